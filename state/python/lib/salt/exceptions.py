class SaltException(Exception):
    """The base of all of Salt's exceptions."""

    def __init__(self, message="", *args):
        message = message if isinstance(message, str) else str(message)
        super().__init__(message, *args)
        self.message = self.strerror = message

    def pack(self):
        return {"message": str(self), "args": self.args}


def _define(base, names):
    for name in names.split():
        globals()[name] = type(name, (base,), {"__module__": __name__})


_define(SaltException, """
    ArgumentValueError AuthenticationError AuthorizationError CacheNotFound CheckError CommandNotFoundError
    EauthAuthenticationError FileLockError FileserverConfigError GetPartitionError GitLockError InvalidConfigError
    InvalidEntityError InvalidKeyError LoaderError MasterExit MinionError MissingSmb NoSuchFileError PillarRenderError
    PkgParseError PublishError SaltAuthenticationError SaltCacheError SaltClientError SaltClientTimeout SaltCloudException
    SaltConfigurationError SaltDaemonNotRunning SaltDeserializationError SaltMasterError SaltMasterUnresolvableError
    SaltMissingException SaltNoMinionsFound SaltReqTimeoutError SaltRunnerError SaltSyndicMasterError
    SaltSystemError SaltValidationError SaltWheelError StateModuleError TimedProcTimeoutError TokenAuthenticationError
    UnsupportedAlgorithm VMwareSaltError""")
_define(globals()["SaltCloudException"], """
    SaltCloudConfigError SaltCloudExecutionFailure SaltCloudExecutionTimeout SaltCloudNotFound SaltCloudPasswordError
    SaltCloudSystemExit""")
_define(globals()["VMwareSaltError"], "VMwareApiError VMwareConnectionError VMwareObjectRetrievalError")
_define(globals()["CheckError"], "SLSCheckError")


class SaltRenderError(SaltException):
    """A template or a file cannot be rendered; line_num and buf say where."""

    def __init__(self, message="", line_num=None, buf="", marker="    <======================", trace=None):
        self.error, self.line_num, self.buffer, self.context = message, line_num, buf, ""
        text = str(message) + ("\n{}\n".format(trace) if trace else "")
        if line_num and buf:
            from salt.utils.stringutils import get_context
            self.context = get_context(buf, line_num, marker=marker)
            text += "; line {}\n\n{}".format(line_num, self.context)
        super().__init__(text)


def _lines(info, indent=""):
    """The lines of what is known of an error beside its message."""
    if isinstance(info, dict):
        for key, v in info.items():
            yield "{}{}:".format(indent, key)
            for line in _lines(v, indent + "    "):
                yield line
    elif isinstance(info, (list, tuple)):
        for v in info:
            yield "{}- {}".format(indent, v)
    else:
        yield indent + str(info)


class CommandExecutionError(SaltException):
    """A command or function failed; info says more."""

    def __init__(self, message="", info=None):
        self.error, self.info = message if isinstance(message, str) else str(message), info
        text = self.error
        if info:
            if text:
                text += " " if text[-1] in ".?!" else ". "
            text += "Additional info follows:\n\n" + "\n".join(_lines(info))
        super().__init__(text)


class SaltInvocationError(SaltException, TypeError):
    """A function was called with arguments that it does not take."""


class SaltSystemExit(SystemExit):
    """A process has to end."""

    def __init__(self, code=0, msg=None):
        super().__init__(code)
        self.message = msg
