from .trust_region import BallMinimum as BallMinimum
from .trust_region import SignCertificate as SignCertificate
from .trust_region import certified_sign as certified_sign
from .trust_region import trust_region_minimum as trust_region_minimum
