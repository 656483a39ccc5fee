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

// Check names what was checked and did not hold.
type Check string

// The checks a refusal can name.
const (
	CheckSignature Check = "signature" // not enough signatures of the keys that may sign it
	CheckExpiry    Check = "expiry"    // out of date: the store is frozen, or the metadata was not refreshed
	CheckVersion   Check = "version"   // older than what was seen, or not the version announced
	CheckDigest    Check = "digest"    // other bytes than were signed
	CheckLength    Check = "length"    // more or fewer bytes than were signed
	CheckForm      Check = "form"      // not the kind of document it should be
	CheckClock     Check = "clock"     // this host's clock is before what it has seen signed
	CheckPin       Check = "pin"       // another root than the one that the host has pinned
	CheckProof     Check = "proof"     // the channel requires that a release was healthy elsewhere first
)

// Refused says that something in the store cannot be believed.
type Refused struct {
	Check Check
	Of    string     // the file or release in question
	By    []string   // IDs of the keys that signed it, as far as it says
	May   Delegation // who may sign it; zero where that does not matter
	Err   error
}

func (r *Refused) Error() string {
	text := fmt.Sprintf("refused %s: %s check failed: %v", r.Of, r.Check, r.Err)
	if len(r.By) > 0 {
		text += "; signed by " + keyList(r.By)
	}
	if (r.Check == CheckSignature || r.Check == CheckProof && len(r.By) > 0) && r.May.Threshold > 0 {
		text += fmt.Sprintf("; %s wants %d of %s", r.May.By, r.May.Threshold, keyList(r.May.Keys))
	}
	return text
}

func (r *Refused) Unwrap() error { return r.Err }

// Hint says what to try, by the check that failed.
func (r *Refused) Hint() string {
	switch r.Check {
	case CheckExpiry:
		return fmt.Sprintf("sign %s anew (`corpus refresh`, by who has its keys), and compare this machine's clock (%s)", r.Of, time.Now().UTC().Format(time.RFC3339))
	case CheckClock:
		return "if this machine's clock is wrong, set it (timedatectl set-ntp true, or chronyc makestep) and run again; if it is right, a publisher's clock was ahead: run `corpus refresh --rebuild` on a machine with the right time"
	case CheckVersion:
		return "the store went back in time: restore its newest metadata, or find out who replaced it; if it was restored from an older copy on purpose, run `corpus refresh --rebuild`"
	case CheckPin:
		return "compare the digest with the root.json that `corpus store init` wrote"
	case CheckSignature:
		return "if its key was revoked, let one that may sign it do so (`corpus export`, `corpus sign`, `corpus import`); if not, do not trust this store until you know who changed it"
	}
	return "do not trust this store until you know who changed it; `corpus verify`, on a workstation, checks all of it"
}

// Withdrawn says that the project withdrew a release. A host that runs it keeps it and reports so; no
// other host gets it.
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

// Hint says how to get on.
func (w *Withdrawn) Hint() string { return "publish a mended version and point the channel at it" }

// Sentinels for what is absent rather than wrong.
var (
	ErrNoProject = errors.New("the store has no such project")
	ErrNoChannel = errors.New("the project has no such channel")
)

// absent says what the store does not have.
func absent(err error, what string) error {
	return diag.WithHint(fmt.Errorf("%w: %s", err, what), "`corpus ls`, on a workstation, shows what there is")
}

// absentAmong is absent for a name that may be misspelt: its hint begins with the name, of those that are there, that was
// probably meant.
func absentAmong(err error, what, name string, there []string) error {
	err = absent(err, what)
	if meant := diag.DidYouMean(name, there); meant != "" {
		return diag.WithHint(err, "%s %s", meant, diag.HintOf(err))
	}
	return err
}

// refuseFile makes a Refused of an error about a file that says who signed it.
func refuseFile(of string, data []byte, may Delegation, err error) error {
	r := refuse(of, err)
	r.By, r.May = SignedBy(data), may
	return r
}

// Vouch makes a refusal of what a project signed tell with which keys it did.
func (c *Client) Vouch(project string, err error) error {
	var r *Refused
	role := c.set.Targets[project]
	if role == nil || !errors.As(err, &r) || r.By != nil {
		return err
	}
	r.By = signers(role)
	if signed := keyList(r.By); !strings.Contains(err.Error(), signed) {
		return fmt.Errorf("%w; signed by %s", err, signed) // the text around it was made before
	}
	return err
}

// Signers names the keys that signed what this client knows of a project.
func (c *Client) Signers(project string) string {
	role := c.set.Targets[project]
	if role == nil {
		return "nobody"
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

// malformed refuses what is signed and yet not what it should be.
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
