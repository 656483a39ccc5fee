package tuf

import (
	"errors"
	"fmt"
	"time"
)

const snapshotFile = RoleSnapshot + ".json"

// Set is the metadata that a client trusts. Files must be added in the order of the specification's client workflow:
// roots, timestamp, snapshot, targets, delegated targets. A refused file changes nothing, with two exceptions: an
// expired timestamp, and a snapshot that is expired or has another version than the timestamp names, are kept to
// compare the next one with.
type Set struct {
	Root      *Metadata[RootType]
	Timestamp *Metadata[TimestampType]
	Snapshot  *Metadata[SnapshotType]
	Targets   map[string]*Metadata[TargetsType] // by role
	RefTime   time.Time                         // files that expired before it are refused
}

// NewSet returns a set that trusts a root, which must be signed by its own keys.
func NewSet(root []byte) (*Set, error) {
	first, err := Decode[RootType](root)
	if err != nil {
		return nil, err
	}
	if err := first.VerifyDelegate(RoleRoot, first); err != nil {
		return nil, err
	}
	return &Set{Root: first, Targets: map[string]*Metadata[TargetsType]{}, RefTime: time.Now().UTC()}, nil
}

// UpdateRoot adds the next root. It must be signed by the keys of the previous one and by its own, and be one version
// newer.
func (s *Set) UpdateRoot(data []byte) error {
	if s.Timestamp != nil {
		return errors.New("a root comes before the timestamp")
	}
	next, err := Decode[RootType](data)
	if err != nil {
		return err
	}
	if err := s.Root.VerifyDelegate(RoleRoot, next); err != nil {
		return err
	}
	if want := s.Root.Signed.Version + 1; next.Signed.Version != want {
		return &VersionError{fmt.Sprintf("it is version %d, and not %d", next.Signed.Version, want)}
	}
	if err := next.VerifyDelegate(RoleRoot, next); err != nil {
		return err
	}
	s.Root = next
	return nil
}

// UpdateTimestamp adds a newer timestamp. The error for the present version is a *SameVersionError. An expired
// timestamp is kept for comparison, and the error is an *ExpiredError.
func (s *Set) UpdateTimestamp(data []byte) error {
	if s.Snapshot != nil {
		return errors.New("a timestamp comes before the snapshot")
	}
	if err := s.fresh("root.json", s.Root.Signed.Expires); err != nil {
		return err
	}
	next, err := Decode[TimestampType](data)
	if err != nil {
		return err
	}
	if err := s.Root.VerifyDelegate(RoleTimestamp, next); err != nil {
		return err
	}
	snapshot := next.Signed.Meta[snapshotFile]
	if snapshot == nil {
		return errors.New("it names no snapshot")
	}
	if s.Timestamp != nil {
		if err := newer("it", next.Signed.Version, s.Timestamp.Signed.Version); err != nil {
			return err
		}
		if next.Signed.Version == s.Timestamp.Signed.Version {
			return &SameVersionError{next.Signed.Version}
		}
		if err := newer("its snapshot", snapshot.Version, s.Timestamp.Signed.Meta[snapshotFile].Version); err != nil {
			return err
		}
	}
	s.Timestamp = next
	return s.fresh("timestamp.json", next.Signed.Expires)
}

// UpdateSnapshot adds the snapshot that the timestamp names. If it was kept on this host, its digest is not checked
// here, but by the caller. A snapshot that is expired, or has another version than the timestamp names, is kept for
// comparison and refused.
func (s *Set) UpdateSnapshot(data []byte, kept bool) error {
	if s.Timestamp == nil {
		return errors.New("a snapshot comes after the timestamp")
	}
	if s.Targets[RoleTargets] != nil {
		return errors.New("a snapshot comes before the targets")
	}
	if err := s.fresh("timestamp.json", s.Timestamp.Signed.Expires); err != nil {
		return err
	}
	if !kept {
		if err := s.Timestamp.Signed.Meta[snapshotFile].VerifyLengthHashes(data); err != nil {
			return err
		}
	}
	next, err := Decode[SnapshotType](data)
	if err != nil {
		return err
	}
	if err := s.Root.VerifyDelegate(RoleSnapshot, next); err != nil {
		return err
	}
	if err := s.follows(next); err != nil {
		return err
	}
	s.Snapshot = next
	return s.currentSnapshot()
}

// follows checks that a snapshot names every file of the previous one, and none in an older version.
func (s *Set) follows(next *Metadata[SnapshotType]) error {
	if s.Snapshot == nil {
		return nil
	}
	for name, before := range s.Snapshot.Signed.Meta {
		file := next.Signed.Meta[name]
		if file == nil {
			return fmt.Errorf("it leaves %s out, which the snapshot before it named", name)
		}
		if err := newer(name, file.Version, before.Version); err != nil {
			return err
		}
	}
	return nil
}

// currentSnapshot checks that the snapshot is the one that the timestamp names, and has not expired.
func (s *Set) currentSnapshot() error {
	if err := s.fresh("snapshot.json", s.Snapshot.Signed.Expires); err != nil {
		return err
	}
	if want := s.Timestamp.Signed.Meta[snapshotFile].Version; s.Snapshot.Signed.Version != want {
		return &VersionError{fmt.Sprintf("it is version %d, and the timestamp names %d", s.Snapshot.Signed.Version, want)}
	}
	return nil
}

// UpdateDelegatedTargets adds the targets file of a role whose keys the delegator names: "root", or another targets
// role.
func (s *Set) UpdateDelegatedTargets(data []byte, role, delegator string) error {
	if s.Snapshot == nil {
		return errors.New("targets come after the snapshot")
	}
	if err := s.currentSnapshot(); err != nil {
		return err
	}
	meta := s.Snapshot.Signed.Meta[role+".json"]
	if meta == nil {
		return fmt.Errorf("the snapshot does not name %s", role)
	}
	if err := meta.VerifyLengthHashes(data); err != nil {
		return err
	}
	next, err := Decode[TargetsType](data)
	if err != nil {
		return err
	}
	if err := s.verifyTargets(next, role, delegator); err != nil {
		return err
	}
	if next.Signed.Version != meta.Version {
		return &VersionError{fmt.Sprintf("it is version %d, and the snapshot names %d", next.Signed.Version, meta.Version)}
	}
	if err := s.fresh(role+".json", next.Signed.Expires); err != nil {
		return err
	}
	s.Targets[role] = next
	return nil
}

func (s *Set) verifyTargets(next *Metadata[TargetsType], role, delegator string) error {
	if delegator == RoleRoot {
		return s.Root.VerifyDelegate(role, next)
	}
	by := s.Targets[delegator]
	if by == nil {
		return fmt.Errorf("%s comes after %s, which names its keys", role, delegator)
	}
	return by.VerifyDelegate(role, next)
}

// fresh refuses a file that had expired at the set's time.
func (s *Set) fresh(file string, expires time.Time) error {
	if s.RefTime.After(expires) {
		return &ExpiredError{fmt.Sprintf("%s expired at %s", file, expires.UTC().Format(time.RFC3339))}
	}
	return nil
}

// newer refuses a version older than the one seen before.
func newer(of string, version, seen int64) error {
	if version < seen {
		return &VersionError{fmt.Sprintf("%s is version %d, and version %d was seen before", of, version, seen)}
	}
	return nil
}
