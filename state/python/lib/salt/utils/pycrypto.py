import random
import string


def secure_password(length=20, use_random=True, chars=None, lowercase=True, uppercase=True, digits=True, punctuation=True,
                    whitespace=False, printable=False):
    """A password of random characters."""
    chars = chars or "".join(group for wanted, group in (
        (lowercase, string.ascii_lowercase), (uppercase, string.ascii_uppercase), (digits, string.digits),
        (punctuation, string.punctuation), (whitespace, string.whitespace), (printable, string.printable)) if wanted)
    source = random.SystemRandom()
    return "".join(source.choice(chars) for _ in range(int(length)))
