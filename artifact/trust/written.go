package trust

import (
	"context"
	"errors"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/artifact/tuf"
)

// rootsDir is the directory in which a publisher keeps every root that it has seen, by version. If a store has lost a
// root, new hosts cannot get from the first root to the newest one.
const rootsDir = "roots"

// KeepWritten keeps the metadata files that a publisher has just published, by their keys in the store, as if it had
// read them there, so that they can be restored if the store loses them. If another publisher has published a newer
// change since, the files are not kept.
func (c *Client) KeepWritten(ctx context.Context, written map[string][]byte) error {
	unlock, err := c.seen.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	if kept, err := c.seen.load(timestampFile); err != nil || versionOfFile(kept) >= versionOfFile(written[TimestampKey]) {
		return err
	}
	for key, data := range written {
		if role, ok := RoleOfKey(key); ok {
			if err := c.keepRole(role, data, written); err != nil {
				return err
			}
		}
		if project, digest, ok := pageOfKey(key); ok {
			if err := c.seen.keepPage(ctx, project, digest, data); err != nil {
				return err
			}
		}
	}
	return c.seen.keep(timestampFile, written[TimestampKey])
}

// listFile returns the name under which a publisher keeps the list of all versions that it wrote beside a project's
// head.
func listFile(project string) string { return filepath.Join("projects", project+"~all.json") }

// KeptList returns the list of all versions that this publisher has published beside a project's head; nil if there is
// none.
func (c *Client) KeptList(project string) ([]byte, error) { return c.seen.load(listFile(project)) }

// keepRole keeps the file of a role. A project's list of all versions is kept beside its head.
func (c *Client) keepRole(role string, data []byte, written map[string][]byte) error {
	version := versionOfFile(data)
	switch role {
	case tuf.RoleRoot: // see KeepRoot
		return nil
	case tuf.RoleSnapshot:
		return c.seen.keep(snapshotFile, data)
	}
	project, head := IsHead(role)
	if _, both := written[RoleKey(HeadRole(project), version)]; both && !head {
		return c.seen.keep(listFile(project), data)
	}
	return c.seen.keep(roleFile(project), data)
}

// RoleOfKey returns the role of a key of a store, metadata/VERSION.ROLE.json.
func RoleOfKey(key string) (role string, ok bool) {
	name, ok := strings.CutPrefix(key, "metadata/")
	number, rest, found := strings.Cut(name, ".")
	role, isFile := strings.CutSuffix(rest, ".json")
	_, err := strconv.ParseInt(number, 10, 64)
	return role, ok && found && isFile && err == nil
}

// pageOfKey returns the page of a key of a store.
func pageOfKey(key string) (project string, digest artifact.Digest, ok bool) {
	rest, ok := strings.CutPrefix(key, pagesPrefix)
	project, name, found := strings.Cut(rest, "/")
	digest, err := artifact.ParseDigest("sha256:" + strings.TrimSuffix(name, ".json"))
	return project, digest, ok && found && err == nil
}

// versionOfFile returns the version of a metadata file; 0 if it is malformed.
func versionOfFile(data []byte) int64 {
	var file struct {
		Signed struct {
			Version int64 `json:"version"`
		} `json:"signed"`
	}
	if DecodeInto(data, &file) != nil {
		return 0
	}
	return file.Signed.Version
}

// keepRoot keeps a root beside the newest one.
func (s seen) keepRoot(version int64, data []byte) error {
	return s.keep(filepath.Join(rootsDir, strconv.FormatInt(version, 10)+".json"), data)
}

// KeepRoot keeps a root that a publisher has written, in case the store loses it.
func (c *Client) KeepRoot(data []byte) error { return c.seen.keepRoot(versionOfFile(data), data) }

// keepPinnedRoot keeps the root that a publisher starts from, unless it is kept already.
func (c *Client) keepPinnedRoot() error {
	version := c.set.Root.Signed.Version
	if kept, err := c.KeptRoot(version); err != nil || kept != nil {
		return err
	}
	return c.seen.keepRoot(version, c.seen.held[rootFile])
}

// KeptRoot returns the root of a version that a publisher has kept; nil if it has not.
func (c *Client) KeptRoot(version int64) ([]byte, error) {
	return c.seen.load(filepath.Join(rootsDir, strconv.FormatInt(version, 10)+".json"))
}

// Salvage is like Complete for a project of which the store has lost pages: it returns the remaining versions, and
// reports whether these are all. They include those in the list of all versions, if that has the same or a later
// version.
func (c *Client) Salvage(ctx context.Context, project string, role *Role) (left *Role, all bool, err error) {
	complete, err := c.Complete(ctx, project, role)
	if err == nil || !isLost(err) {
		return complete, err == nil, err
	}
	left, err = c.joinLeft(ctx, project, role)
	return left, false, err
}

// joinLeft is like join without the lost pages.
func (c *Client) joinLeft(ctx context.Context, project string, role *Role) (*Role, error) {
	digests, err := pageDigests(role)
	if err != nil {
		return nil, malformed(project, err)
	}
	few := clone(role)
	list := make([]string, len(digests))
	for i, digest := range digests {
		if digest == "" {
			continue
		}
		if _, err := c.pageData(ctx, project, digest); err == nil {
			list[i] = encodeDigest(digest)
		} else if !isLost(err) {
			return nil, err
		}
	}
	if err := setField(few, pagesField, list); err != nil {
		return nil, err
	}
	return c.join(ctx, project, few)
}

// isLost reports whether a store lacks a file or has a damaged one, as opposed to being unreachable.
func isLost(err error) bool {
	var refused *Refused
	return errors.As(err, &refused) || errors.Is(err, store.ErrNotFound) || errors.Is(err, store.ErrForbidden)
}

// ahead reports whether a timestamp was signed in the future of a clock. Hosts with the right time
// refuse it and do not keep it.
func ahead(data []byte, now time.Time) bool {
	timestamp, err := Decode[tuf.TimestampType](data)
	if err != nil {
		return false
	}
	created, ok := Created(timestamp)
	return ok && created.After(now.Add(ClockTolerance))
}
