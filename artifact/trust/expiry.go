package trust

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"time"

	"github.com/corpus-agent/corpus-agent/artifact/structsort"
	"github.com/corpus-agent/corpus-agent/artifact/tuf"
	"github.com/corpus-agent/corpus-agent/artifact/walk"
)

// Expiry is the time at which the signature of a file expires.
type Expiry struct {
	Role    string    `json:"role"` // timestamp, snapshot, targets, root or a project
	Expires time.Time `json:"expires"`
}

// Lifetime returns how long the signatures of a role are valid when publishers make them.
func Lifetime(role string) time.Duration {
	switch role {
	case tuf.RoleTimestamp:
		return 14 * day
	case tuf.RoleRoot:
		return 365 * day
	}
	return 90 * day
}

// Soon reports whether less than a third of the lifetime is left. Metadata that is refreshed daily never gets there, so
// people should be reminded.
func (e Expiry) Soon(now time.Time) bool { return e.Expires.Sub(now) < Lifetime(e.Role)/3 }

// Remedy returns the command that renews the file.
func (e Expiry) Remedy() string {
	switch e.Role {
	case tuf.RoleTimestamp, tuf.RoleSnapshot:
		return "corpus refresh"
	case tuf.RoleRoot:
		return "corpus refresh --within 365, with the keys of root"
	}
	return "corpus refresh --within 90, with the key of " + e.Role + "; publishing renews it too"
}

// String returns a sentence with the role, the time, and the command that renews the file.
func (e Expiry) String() string {
	return fmt.Sprintf("the signature of %s expires on %s: %s", e.Role,
		e.Expires.UTC().Format("2006-01-02 15:04"), e.Remedy())
}

// Expiring returns the entries of all that expire soon.
func Expiring(all []Expiry, now time.Time) []Expiry {
	return structsort.Without(all, func(e Expiry) bool { return !e.Soon(now) })
}

// Expiries returns the expiry of the verified metadata, the first to expire first. The caller must call Refresh first;
// projects are included if they were read since.
func (c *Client) Expiries() []Expiry {
	list := []Expiry{{tuf.RoleRoot, c.set.Root.Signed.Expires}}
	if c.set.Timestamp != nil {
		list = append(list, Expiry{tuf.RoleTimestamp, c.set.Timestamp.Signed.Expires})
	}
	if c.set.Snapshot != nil {
		list = append(list, Expiry{tuf.RoleSnapshot, c.set.Snapshot.Signed.Expires})
	}
	for name, role := range c.set.Targets {
		if project, isHead := IsHead(name); isHead {
			name = project
		}
		list = append(list, Expiry{name, role.Signed.Expires})
	}
	return inOrder(list)
}

// KeptExpiries is like Expiries for the metadata that a host keeps in dir, for its own projects. It does not read the
// store. Files that the host does not have are left out.
func KeptExpiries(dir string, projects ...string) ([]Expiry, error) {
	files := map[string]string{tuf.RoleRoot: rootFile, tuf.RoleTimestamp: timestampFile, tuf.RoleSnapshot: snapshotFile,
		targetsRole: roleFile(targetsRole)}
	for _, project := range projects {
		files[project] = roleFile(project)
	}
	var list []Expiry
	var errs []error
	for role, name := range files {
		expires, err := keptExpiry(filepath.Join(dir, name))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
		if err == nil {
			list = append(list, Expiry{role, expires})
		}
	}
	return inOrder(list), errors.Join(errs...)
}

func keptExpiry(file string) (time.Time, error) {
	data, err := walk.ReadFile(file)
	if err != nil {
		return time.Time{}, err
	}
	var kept struct {
		Signed struct {
			Expires time.Time `json:"expires"`
		} `json:"signed"`
	}
	if err := DecodeInto(data, &kept); err != nil {
		return time.Time{}, fmt.Errorf("reading %s: %w", file, err)
	}
	return kept.Signed.Expires, nil
}

func inOrder(list []Expiry) []Expiry {
	structsort.Func(list, func(a, b Expiry) int {
		if c := a.Expires.Compare(b.Expires); c != 0 {
			return c
		}
		return len(a.Role) - len(b.Role)
	})
	return slices.CompactFunc(list, func(a, b Expiry) bool { return a == b })
}

// checkClock refuses a clock that is before the newest timestamp seen: with such a clock, expiry would mean
// nothing.
func (c *Client) checkClock() error {
	created, ok := Created(c.set.Timestamp)
	if !ok || c.renew || c.now().Add(ClockTolerance).After(created) {
		return nil
	}
	return &Refused{Check: CheckClock, Of: timestampFile,
		Err: ClockError(created, c.now())}
}

// ClockError returns the error for a signature made in the future of the clock.
func ClockError(signed, now time.Time) error {
	return fmt.Errorf("it was signed at %s, and this machine's clock shows %s: %v before",
		signed.UTC().Format(time.RFC3339), now.UTC().Format(time.RFC3339), signed.Sub(now).Round(time.Second))
}

// expired returns an error if until has passed.
func expired(until, at time.Time) error {
	if at.After(until) {
		return &tuf.ExpiredError{Msg: "it expired at " + until.Format(time.RFC3339)}
	}
	return nil
}

// Created returns the time at which a timestamp was signed, if it has that field.
func Created(timestamp *tuf.Metadata[tuf.TimestampType]) (time.Time, bool) {
	if timestamp == nil {
		return time.Time{}, false
	}
	text, _ := timestamp.Signed.UnrecognizedFields[createdField].(string)
	at, err := time.Parse(time.RFC3339, text)
	return at, err == nil
}

// SetCreated sets the time at which a timestamp is signed.
func SetCreated(timestamp *tuf.Metadata[tuf.TimestampType], at time.Time) {
	if timestamp.Signed.UnrecognizedFields == nil {
		timestamp.Signed.UnrecognizedFields = map[string]any{}
	}
	timestamp.Signed.UnrecognizedFields[createdField] = at.UTC().Format(time.RFC3339)
}
