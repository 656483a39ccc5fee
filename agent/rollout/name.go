package rollout

import (
	"strconv"
	"strings"
	"time"

	"github.com/corpus-agent/corpus-agent/agent/hostrecord"
	"github.com/corpus-agent/corpus-agent/artifact"
)

// Outcome is the result of a host.
type Outcome string

// The outcomes. A host that was healthy and rolled back later has both results: the later one counts.
const (
	Healthy    Outcome = "healthy"
	Failed     Outcome = "failed"
	RolledBack Outcome = "rolled-back"
)

const (
	resultsDir = "results/"
	haltsDir   = "halts/"
	leasesDir  = "leases/"
	suffix     = ".json"
	sigLength  = 86 // of ed25519, in unpadded base64
)

// Name is the decoded name of an object: the result of a host, or a halt, which records that the host found the limit
// reached.
type Name struct {
	Host    string
	Outcome Outcome // empty for a halt
	Epoch   int64   // of a halt: when the rollout was last resumed, in Unix time; 0 for never
	Run     string  // the run of the host, for a failure as FailureRun returns it
	Sig     string  // signature of the host's key over these fields and the rollout
}

// String returns the name below the prefix of its rollout.
func (n Name) String() string {
	dir, says := resultsDir, string(n.Outcome)
	if n.Outcome == "" {
		dir, says = haltsDir, strconv.FormatInt(n.Epoch, 10)
	}
	return dir + n.Host + "/" + says + "." + n.Run + "." + n.Sig + suffix
}

// ParseName parses the name of a result or of a halt below the prefix of its rollout. It does not verify the signature.
func ParseName(text string) (n Name, ok bool) {
	rest, halt := strings.CutPrefix(text, haltsDir)
	if !halt {
		if rest, ok = strings.CutPrefix(text, resultsDir); !ok {
			return Name{}, false
		}
	}
	host, file, ok := strings.Cut(rest, "/")
	says, file, ok2 := strings.Cut(file, ".")
	file, ok3 := strings.CutSuffix(file, suffix)
	dot := strings.LastIndexByte(file, '.')
	if !ok || !ok2 || !ok3 || dot < 0 || artifact.CheckHost(host) != nil {
		return Name{}, false
	}
	n = Name{Host: host, Run: file[:dot], Sig: file[dot+1:]}
	if !goodSig(n.Sig) {
		return Name{}, false
	}
	if halt {
		epoch, err := strconv.ParseInt(says, 10, 64)
		n.Epoch = epoch
		return n, err == nil && n.hasRun() && n.String() == text // one spelling for each number
	}
	n.Outcome = Outcome(says)
	return n, n.hasRun() && (n.Outcome == Healthy || n.Outcome == Failed || n.Outcome == RolledBack)
}

// hasRun reports whether a name has the ID of a run, for a failure as FailureRun returns it.
func (n Name) hasRun() bool {
	if n.Outcome == "" {
		return IsRun(n.Run)
	}
	id, forgiven := n.splitRun()
	return IsRun(id) && FailureRun(id, forgiven) == n.Run
}

// IsRun reports whether a text has the form of the ID of a run, which is the time of its start.
func IsRun(text string) bool {
	at, err := time.Parse(hostrecord.RunTime, text)
	return err == nil && at.Format(hostrecord.RunTime) == text
}

// goodSig reports whether a text has the form of a signature.
func goodSig(sig string) bool { return len(sig) == sigLength && plain(sig, "_-") }

// plain reports whether a text has only ASCII letters, digits and the given characters.
func plain(text, others string) bool {
	return !strings.ContainsFunc(text, func(c rune) bool {
		return (c < '0' || c > '9') && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') && !strings.ContainsRune(others, c)
	})
}

// afterResume separates the ID of a run from the time of the last resume in the name of a failure.
const afterResume = ".r"

// FailureRun returns the run of a failure for its name, with the time in Unix seconds up to which failures were
// forgiven when the host decided to take the release; 0 for never. The host signs it. So the failure counts until the
// next resume, whatever time the store gives it.
func FailureRun(run string, forgiven int64) string {
	if forgiven == 0 {
		return run
	}
	return run + afterResume + strconv.FormatInt(forgiven, 10)
}

// RunID returns the ID of the run.
func (n Name) RunID() string {
	id, _ := n.splitRun()
	return id
}

// splitRun returns the ID of the run, and the time that FailureRun appended.
func (n Name) splitRun() (id string, forgiven int64) {
	at := strings.LastIndex(n.Run, afterResume)
	if n.Outcome == Healthy || at < 0 {
		return n.Run, 0
	}
	forgiven, err := strconv.ParseInt(n.Run[at+len(afterResume):], 10, 64)
	if err != nil {
		return n.Run, 0
	}
	return n.Run[:at], forgiven
}

// text returns the text that the signature of a name covers. It includes the rollout and the release, so that a name is
// valid for no other.
func (r Rollout) text(n Name) string {
	says := string(n.Outcome)
	if n.Outcome == "" {
		says = "halt " + strconv.FormatInt(n.Epoch, 10)
	}
	return strings.Join([]string{"rollout", r.Ref.String(), r.Start.ID, r.Start.Release, says, n.Host, n.Run}, "\n")
}

// epoch returns the epoch of halts that are found now. Halts that were recorded before a person resumed the rollout do
// not count.
func (r Rollout) epoch() int64 {
	if r.Start.Resumed.IsZero() {
		return 0
	}
	return r.Start.Resumed.Unix()
}

// wrongSignature is the reason why a name does not count if it is not signed with the key that the roster has for its
// host.
const wrongSignature = "its signature is not that of the host's key, or not for this rollout"

// holds returns the reason why a name does not count; "" if it does.
func (r Rollout) holds(n Name) string {
	m, ok := r.Roster.find(n.Host)
	switch {
	case !ok:
		return "the host is not in the roster of this rollout"
	case !m.Key.Signed(r.text(n), n.Sig):
		return wrongSignature
	}
	return ""
}

// Entry is a valid name, with the time at which the store received it.
type Entry struct {
	Name
	At   time.Time
	Wave int
}
