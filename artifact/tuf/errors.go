package tuf

import "fmt"

// SignatureError says that too few of the keys that may sign a role have signed it.
type SignatureError struct {
	Role       string
	Have, Want int
}

func (e *SignatureError) Error() string {
	return fmt.Sprintf("%s has %d valid signatures, and needs %d", e.Role, e.Have, e.Want)
}

// VersionError says that a file is older than what was seen, or is not the version that is announced.
type VersionError struct{ Msg string }

func (e *VersionError) Error() string { return e.Msg }

// SameVersionError says that a timestamp has the version of the one that a Set has, which stays.
type SameVersionError struct{ Version int64 }

func (e *SameVersionError) Error() string {
	return fmt.Sprintf("version %d of the timestamp is the one that was seen before", e.Version)
}

// ExpiredError says that a file is out of date.
type ExpiredError struct{ Msg string }

func (e *ExpiredError) Error() string { return e.Msg }

// ContentError says that data is not what was signed.
type ContentError struct{ Msg string }

func (e *ContentError) Error() string { return e.Msg }
