from .certify import Certificate as Certificate
from .verify import Verification as Verification
