from .certify import Certificate as Certificate
from .certify import Limited as Limited
from .verify import Verification as Verification
