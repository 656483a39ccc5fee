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
    SaltMissingException SaltNoMinionsFound SaltRenderError SaltReqTimeoutError SaltRunnerError SaltSyndicMasterError
    SaltSystemError SaltValidationError SaltWheelError StateModuleError TimedProcTimeoutError TokenAuthenticationError
    UnsupportedAlgorithm VMwareSaltError""")
_define(globals()["SaltCloudException"], """
    SaltCloudConfigError SaltCloudExecutionFailure SaltCloudExecutionTimeout SaltCloudNotFound SaltCloudPasswordError
    SaltCloudSystemExit""")
_define(globals()["VMwareSaltError"], "VMwareApiError VMwareConnectionError VMwareObjectRetrievalError")
_define(globals()["CheckError"], "SLSCheckError")


class CommandExecutionError(SaltException):
    """A command or function failed; info says more."""

    def __init__(self, message="", info=None):
        self.error, self.info = message if isinstance(message, str) else str(message), info
        text = self.error
        if info:
            text = (text.rstrip() + "\n\n" if text else "") + "Additional info follows:\n\n" + str(info)
        super().__init__(text)


class SaltInvocationError(SaltException, TypeError):
    """A function was called with arguments that it does not take."""


class SaltSystemExit(SystemExit):
    """A process has to end."""

    def __init__(self, code=0, msg=None):
        super().__init__(code)
        self.message = msg
