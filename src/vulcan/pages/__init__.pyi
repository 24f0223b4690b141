from .maps import PageMap as PageMap
from .page import Page as Page
