package tuf

import (
	"fmt"

	"github.com/corpus-agent/corpus-agent/state/diag"
)

// SignatureError is the error for a file that too few of the authorized keys have signed.
type SignatureError struct {
	Role       string
	Have, Want int
}

func (e *SignatureError) Error() string {
	return fmt.Sprintf("%s has %s, and needs %d", e.Role, diag.Count(e.Have, "valid signature"), e.Want)
}

// VersionError is the error for a file that is older than the one seen before, or is not the announced version.
type VersionError struct{ Msg string }

func (e *VersionError) Error() string { return e.Msg }

// SameVersionError is the error for a timestamp with the version of the one in a Set, which stays.
type SameVersionError struct{ Version int64 }

func (e *SameVersionError) Error() string {
	return fmt.Sprintf("version %d of the timestamp is the one that was seen before", e.Version)
}

// ExpiredError is the error for an expired file.
type ExpiredError struct{ Msg string }

func (e *ExpiredError) Error() string { return e.Msg }

// ContentError is the error for data with another length or digest than was signed.
type ContentError struct{ Msg string }

func (e *ContentError) Error() string { return e.Msg }
