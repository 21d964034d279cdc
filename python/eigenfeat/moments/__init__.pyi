from .class_moments import ClassMoments as ClassMoments
