from eigenfeat.moments.class_moments import ClassMoments as ClassMoments
