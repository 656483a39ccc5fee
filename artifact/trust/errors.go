package trust

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/tuf"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// Check names a check that failed.
type Check string

// The checks that a refusal can name.
const (
	CheckSignature Check = "signature" // too few signatures of the keys that may sign it
	CheckExpiry    Check = "expiry"    // expired: the store is frozen, or the metadata was not refreshed
	CheckVersion   Check = "version"   // older than the version seen before, or not the announced one
	CheckDigest    Check = "digest"    // other bytes than were signed
	CheckLength    Check = "length"    // more or fewer bytes than were signed
	CheckForm      Check = "form"      // malformed
	CheckClock     Check = "clock"     // this host's clock is before the time of a signature it has seen
	CheckPin       Check = "pin"       // not the root that the host has pinned
	CheckProof     Check = "proof"     // the channel requires proof that a release was healthy elsewhere first
)

// Refused is the error for content of the store that failed a check.
type Refused struct {
	Check Check
	Of    string     // the file or release
	By    []string   // IDs of the keys that it claims to be signed with
	May   Delegation // the keys that may sign it; zero if that does not matter
	Err   error
}

func (r *Refused) Error() string {
	text := fmt.Sprintf("refused %s: %s check failed: %v", r.Of, r.Check, r.Err)
	if len(r.By) > 0 {
		text += "; signed by " + keyList(r.By)
	}
	if (r.Check == CheckSignature || r.Check == CheckProof && len(r.By) > 0) && r.May.Threshold > 0 {
		text += fmt.Sprintf("; %s requires %d of %s", r.May.By, r.May.Threshold, keyList(r.May.Keys))
	}
	return text
}

func (r *Refused) Unwrap() error { return r.Err }

// Hint returns a remedy, depending on the check that failed.
func (r *Refused) Hint() string {
	topic := diag.Metadata
	switch r.Check {
	case CheckClock:
		topic = diag.Clock
	case CheckPin:
		topic = diag.Root
	case CheckProof:
		topic = diag.Proof
	case CheckDigest, CheckLength:
		topic = diag.StoreLost
	}
	return topic.Coded(r.Remedy())
}

// Remedy is the hint without its code.
func (r *Refused) Remedy() string {
	switch r.Check {
	case CheckExpiry:
		return fmt.Sprintf("sign %s again (`corpus refresh`, with its keys), and compare this machine's clock (%s)", r.Of,
			time.Now().UTC().Format(time.RFC3339))
	case CheckClock:
		return "if this machine's clock is wrong, set it (timedatectl set-ntp true, or chronyc makestep) and run again; if " +
			"it is right, a publisher's clock was ahead: run `corpus refresh --rebuild` on a machine with the right time"
	case CheckVersion:
		return "the store was rolled back: restore its newest metadata, or find out who replaced it; " + onCopy + "; if " +
			"the store was restored from an older copy on purpose, " + byPublisher
	case CheckPin:
		return "compare the digest with the root.json that `corpus store init` wrote"
	case CheckSignature:
		return "if its key was revoked, let one that may sign it do so (`corpus export`, `corpus sign`, `corpus import`); " +
			"if not, do not trust this store until you know who changed it"
	}
	if r.Check == CheckDigest || r.Check == CheckLength {
		return "the store has other bytes than were signed: find out who or what changed them; " + onCopy + "; in the " +
			"publisher's store `corpus publish` of the same file replaces an artifact; `corpus verify` names all such files"
	}
	return "do not trust this store until you know who changed it; `corpus verify`, on a workstation, checks all of it"
}

// Parts of hints about a store that has other files than were signed. Nothing may be signed in a copy of a store: its
// versions would run ahead, and hosts would refuse what is copied next.
const (
	onCopy = "a copy of a store is copied again from the publisher's, timestamp.json last, and nothing is signed in " +
		"it"
	byPublisher = "its publisher runs `corpus refresh --rebuild` with the --keys directory that published last, or, " +
		"where the seen in it is lost too, makes new keys: docs/trust.md#the-store-is-restored-from-a-backup"
)

// Withdrawn is the error for a release that its project withdrew. A host that runs it keeps it and reports this; no
// other host deploys it.
type Withdrawn struct {
	Release artifact.Release
	Yank    Yank
}

func (w *Withdrawn) Error() string {
	text := fmt.Sprintf("%s was withdrawn on %s", w.Release, w.Yank.At.UTC().Format("2006-01-02"))
	if w.Yank.Reason != "" {
		text += ": " + w.Yank.Reason
	}
	return text
}

// Hint returns the next step.
func (w *Withdrawn) Hint() string {
	return diag.Withdrawn.Coded("publish a fixed version and point the channel at it")
}

// Errors for things that are absent rather than wrong.
var (
	ErrNoProject = errors.New("the store has no such project")
	ErrNoChannel = errors.New("the project has no such channel")
)

// absent adds a name and a hint to an error about something that the store lacks.
func absent(err error, what string) error {
	return diag.Unpublished.Hint(fmt.Errorf("%w: %s", err, what), "`corpus ls`, on a workstation, shows what there is")
}

// absentAmong is like absent for a name that may be misspelled: its hint suggests the most similar name in there.
func absentAmong(err error, what, name string, there []string) error {
	err = absent(err, what)
	if meant := diag.DidYouMean(name, there); meant != "" {
		return diag.Unpublished.Hint(err, "%s %s", meant, diag.HintOf(err))
	}
	return err
}

// refuseFile turns an error about a signed file into a Refused.
func refuseFile(of string, data []byte, may Delegation, err error) error {
	r := refuse(of, err)
	r.By, r.May = SignedBy(data), may
	return r
}

// AddSigners adds the keys that signed a project to a refusal of the project's content.
func (c *Client) AddSigners(project string, err error) error {
	var r *Refused
	role := c.set.Targets[project]
	if role == nil || !errors.As(err, &r) || r.By != nil {
		return err
	}
	r.By = signers(role)
	if signed := keyList(r.By); !strings.Contains(err.Error(), signed) {
		return fmt.Errorf("%w; signed by %s", err, signed) // the text of the wrapping error was made before
	}
	return err
}

// Signers names the keys that signed the project metadata that this client has loaded.
func (c *Client) Signers(project string) string {
	role := c.set.Targets[project]
	if role == nil {
		return "no key"
	}
	return keyList(signers(role))
}

func signers(role *Role) []string {
	ids := make([]string, len(role.Signatures))
	for i, s := range role.Signatures {
		ids[i] = s.KeyID
	}
	return ids
}

// malformed refuses content that is signed but malformed.
func malformed(of string, err error) error { return &Refused{Check: CheckForm, Of: of, Err: err} }

// refuse turns an error of artifact/tuf into a Refused.
func refuse(of string, err error) *Refused {
	check := CheckForm
	switch {
	case as[*tuf.ExpiredError](err):
		check = CheckExpiry
	case as[*tuf.SignatureError](err):
		check = CheckSignature
	case as[*tuf.VersionError](err):
		check = CheckVersion
	case as[*tuf.ContentError](err):
		check = CheckDigest
	}
	return &Refused{Check: check, Of: of, Err: err}
}

func as[T error](err error) bool {
	var target T
	return errors.As(err, &target)
}
