import base64
import hashlib
import hmac
import os
import random

import salt.utils.stringutils
from salt.utils import _walk


def _bytes(v):
    return salt.utils.stringutils.to_bytes(v)


def base64_b64encode(instr):
    return base64.b64encode(_bytes(instr)).decode()


def base64_b64decode(instr):
    data = base64.b64decode(_bytes(instr))
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data


def md5_digest(instr):
    return hashlib.md5(_bytes(instr)).hexdigest()


def sha1_digest(instr):
    return hashlib.sha1(_bytes(instr)).hexdigest()


def sha256_digest(instr):
    return hashlib.sha256(_bytes(instr)).hexdigest()


def sha512_digest(instr):
    return hashlib.sha512(_bytes(instr)).hexdigest()


def hmac_signature(string, shared_secret, challenge_hmac):
    return hmac.new(_bytes(shared_secret), _bytes(string), hashlib.sha256).digest() == base64.b64decode(_bytes(challenge_hmac))


def hmac_compute(string, shared_secret):
    return hmac.new(_bytes(shared_secret), _bytes(string), hashlib.sha256).hexdigest()


def random_hash(size=9999999999, hash_type=None):
    return getattr(hashlib, hash_type or "md5")(_bytes(str(random.SystemRandom().randint(0, size)))).hexdigest()


def get_hash(path, form="sha256", chunk_size=65536):
    digest = getattr(hashlib, form, None)
    if digest is None:
        raise ValueError("Invalid hash type: {}".format(form))
    digest = digest()
    with _walk.reading(path) as f:
        for block in iter(lambda: f.read(chunk_size), b""):
            digest.update(block)
    return digest.hexdigest()


class DigestCollector:
    def __init__(self, form="sha256", buff=0x10000):
        self.__digest, self.__buff = hashlib.new(form), buff

    def add(self, path):
        with _walk.reading(path) as f:
            for block in iter(lambda: f.read(self.__buff), b""):
                self.__digest.update(block)

    def digest(self):
        return self.__digest.hexdigest()


urandom = os.urandom
