"""What translate.py says of PTX that it does not know."""


class Unknown(Exception):
    pass
