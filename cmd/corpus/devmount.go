package main

import (
	"fmt"
	"os"
	"os/user"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/corpus-agent/corpus-agent/artifact/cloud"
	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host/binding"
)

// parseMount parses a mount as a person gives it: DIR[:PATH][:ro|rw].
func (d *developing) parseMount(text string) (cloud.Mount, error) {
	f := strings.Split(text, ":")
	m := cloud.Mount{}
	if last := f[len(f)-1]; len(f) > 1 && (last == "ro" || last == "rw") {
		m.Write = last == "rw"
		f = f[:len(f)-1]
	}
	dir, err := filepath.Abs(f[0])
	if err != nil {
		return m, err
	}
	m.Source = dir
	m.Target = path.Join("/srv/work", path.Base(dir))
	if len(f) == 2 {
		m.Target = f[1]
	}
	if len(f) > 2 || f[0] == "" {
		return m, diag.Usage.Hint(fmt.Errorf("--mount %s", text), "write DIR, DIR:PATH or DIR:PATH:rw")
	}
	if m.UID, m.GID, err = ownerOf(m.Source); err != nil {
		return m, fmt.Errorf("--mount %s: %w", text, err)
	}
	if err := m.Check(); err != nil {
		return m, fmt.Errorf("--mount %s: %w", text, err)
	}
	if os.Geteuid() != 0 {
		return m, nil
	}
	possible := binding.Binding{Source: m.Source, Write: m.Write, UID: m.UID, GID: m.GID, As: firstUIDs}
	return m, possible.Possible()
}

// firstUIDs is the first user ID of a guest.
const firstUIDs = 8 * 65536

// ownerOf returns the owner of a directory and the primary group of that user. The group of the directory does not
// matter: its owner may be no member of that.
func ownerOf(dir string) (uid, gid int, err error) {
	if uid, err = binding.OwnerOf(dir); err != nil || uid == 0 {
		return uid, 0, err
	}
	u, err := user.LookupId(strconv.Itoa(uid))
	if err != nil {
		return uid, 0, diag.Path.Hint(fmt.Errorf("the owner of %s: %w", dir, err),
			"give the directory to a user in /etc/passwd")
	}
	gid, err = strconv.Atoi(u.Gid)
	return uid, gid, err
}

// withMounts returns the mounts of a guest with some added. One at the same place is replaced.
func withMounts(now []string, more []cloud.Mount) []string {
	all := slices.Clone(now)
	for _, m := range more {
		all = slices.DeleteFunc(all, func(text string) bool {
			had, err := cloud.ParseMount(text)
			return err == nil && had.Target == m.Target
		})
		all = append(all, m.String())
	}
	slices.Sort(all)
	return all
}

// storeMount is the mount of the local store, with which a guest deploys what is published there.
func (d *developing) storeMount() cloud.Mount {
	dir := path.Join(d.dir, "store")
	return cloud.Mount{Source: dir, Target: dir}
}
