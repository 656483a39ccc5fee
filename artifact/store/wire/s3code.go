package wire

import (
	"fmt"
	"time"

	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// byCode determines the meaning of an S3 error code. The verdict has no kind for an unknown code.
func (c *Call) byCode(code string) verdict {
	switch code {
	case "NoSuchKey", "NoSuchVersion", "NotFound":
		return verdict{kind: store.ErrNotFound}
	case "NoSuchBucket":
		return verdict{kind: store.ErrNoStore,
			hint: diag.StoreURL.Coded("check the bucket's name in the store's URL, or create the bucket")}
	case "AccessDenied", "AccountProblem", "AllAccessDisabled", "Forbidden":
		return verdict{kind: store.ErrForbidden, hint: c.permission()}
	case "PreconditionFailed":
		return verdict{kind: store.ErrPrecondition}
	case "ConditionalRequestConflict", "OperationAborted":
		// Another write is in progress; whether the condition holds is known only after it.
		return verdict{kind: store.ErrThrottled, again: true}
	case "SlowDown", "SlowDownRead", "SlowDownWrite", "ServiceUnavailable", "RequestLimitExceeded",
		"Throttling", "ThrottlingException", "TooManyRequests", "BandwidthLimitExceeded":
		return verdict{kind: store.ErrThrottled, again: true, hint: throttled}
	case "RequestTimeout", "InternalError", "IncompleteBody", "BadDigest", "XAmzContentChecksumMismatch",
		"XAmzContentSHA256Mismatch",
		"InvalidPart", "InvalidPartOrder":
		return verdict{kind: store.ErrUnreachable, again: true}
	case "PermanentRedirect", "TemporaryRedirect", "AuthorizationHeaderMalformed",
		"IllegalLocationConstraintException", "InvalidRegion":
		return c.elsewhere()
	case "NotImplemented":
		return verdict{kind: store.ErrUnreachable,
			hint: diag.Store.Coded("this server lacks a part of S3 that is needed, such as conditional writes")}
	}
	return c.byCredentials(code)
}

func (c *Call) byCredentials(code string) verdict {
	if Expired(code) {
		// Renewable credentials are dropped, and a retry uses new ones.
		return verdict{kind: store.ErrCredentials, again: true,
			hint: diag.Credentials.Coded("the session has expired: log in again, or let the host's role give credentials")}
	}
	switch code {
	case "InvalidAccessKeyId", "SignatureDoesNotMatch", "InvalidSecurity":
		return verdict{kind: store.ErrCredentials,
			hint: diag.Credentials.Coded(
				"the access key is unknown there or its secret is wrong: check where the credentials come from")}
	case "RequestTimeTooSkewed", "RequestExpired":
		return verdict{kind: store.ErrCredentials,
			hint: diag.Clock.Coded("set this host's clock, for example with timedatectl set-ntp true" + c.skew())}
	}
	return verdict{}
}

// Expired reports whether an S3 error code means that the credentials have expired.
func Expired(code string) bool {
	switch code {
	case "ExpiredToken", "ExpiredTokenException", "TokenRefreshRequired", "InvalidToken":
		return true
	}
	return false
}

// skew describes the difference between this host's clock and the server's.
func (c *Call) skew() string {
	if c.answer.clock.IsZero() {
		return ""
	}
	off := time.Since(c.answer.clock).Round(time.Second)
	if off < 0 {
		return fmt.Sprintf("; it is %v behind the store's", -off)
	}
	return fmt.Sprintf("; it is %v ahead of the store's", off)
}

// permission names the permission that an access policy would have to grant.
func (c *Call) permission() string {
	action := map[store.Op]string{
		store.OpGet:    "reading it (s3:GetObject)",
		store.OpPut:    "writing it (s3:PutObject)",
		store.OpList:   "listing the bucket (s3:ListBucket)",
		store.OpDelete: "deleting it (s3:DeleteObject)",
	}[c.Op]
	hint := "the store's policy must allow " + action
	if c.Op == store.OpGet {
		hint += "; S3 also answers so for an object that does not exist, if the user may not list the bucket"
	}
	return diag.Credentials.Coded(hint)
}

// elsewhere determines the meaning of a redirect, which in S3 means another region.
func (c *Call) elsewhere() verdict {
	v := verdict{kind: store.ErrUnreachable,
		hint: diag.StoreURL.Coded("the store's URL leads elsewhere: check its host, region and bucket")}
	if c.answer.region != "" {
		v.hint = diag.StoreURL.Coded(
			fmt.Sprintf("the bucket is in another region: add ?region=%s to the store's URL", c.answer.region))
	}
	return v
}
