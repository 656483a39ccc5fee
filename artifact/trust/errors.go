package trust

import (
	"errors"
	"fmt"
	"time"

	"github.com/theupdateframework/go-tuf/v2/metadata"
)

// Check names what was checked and did not hold.
type Check string

// The checks a refusal can name.
const (
	CheckSignature Check = "signature" // not enough signatures of the keys that may sign it
	CheckExpiry    Check = "expiry"    // out of date: frozen store, or nobody renewed it
	CheckVersion   Check = "version"   // older than what was seen, or not the version announced
	CheckDigest    Check = "digest"    // other bytes than were signed
	CheckLength    Check = "length"    // more or fewer bytes than were signed
	CheckForm      Check = "form"      // not the kind of document it should be
	CheckClock     Check = "clock"     // this host's clock is before what it has seen signed
	CheckPin       Check = "pin"       // another root than the host was told to trust
)

// Refused says that something in the store cannot be believed.
type Refused struct {
	Check Check
	Of    string // the file or release in question
	Err   error
}

func (r *Refused) Error() string {
	return fmt.Sprintf("refused %s: %s check failed: %v", r.Of, r.Check, r.Err)
}

func (r *Refused) Unwrap() error { return r.Err }

// Hint says what to try, by the check that failed.
func (r *Refused) Hint() string {
	switch r.Check {
	case CheckExpiry:
		return fmt.Sprintf("publish or refresh the store so that %s is signed anew, and compare this host's clock (%s)", r.Of, time.Now().UTC().Format(time.RFC3339))
	case CheckClock:
		return "set the clock (timedatectl, chronyc makestep) and run again"
	case CheckVersion:
		return "the store went back in time: restore its newest metadata, or ask who replaced it"
	case CheckPin:
		return "compare the digest with the root.json that `corpus store init` wrote"
	}
	return "do not trust this store until you know who changed it; `corpus verify` checks all of it"
}

// Sentinels for what is absent rather than wrong.
var (
	ErrNoProject = errors.New("the store has no such project")
	ErrNoChannel = errors.New("the project has no such channel")
)

// refuse turns an error of the library into a Refused.
func refuse(of string, err error) error {
	check := CheckForm
	switch {
	case as[*metadata.ErrExpiredMetadata](err):
		check = CheckExpiry
	case as[*metadata.ErrUnsignedMetadata](err):
		check = CheckSignature
	case as[*metadata.ErrBadVersionNumber](err):
		check = CheckVersion
	case as[*metadata.ErrLengthOrHashMismatch](err):
		check = CheckDigest
	}
	return &Refused{Check: check, Of: of, Err: err}
}

func as[T error](err error) bool {
	var target T
	return errors.As(err, &target)
}
