package packages

import (
	"context"
	"fmt"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/host"
)

// aptAhead has a directory for each group of packages that are downloaded ahead. It is on the filesystem of apt's
// archives, and not in them: apt and hosts that keep no archives delete what they find there.
const aptAhead = "/var/cache/apt/ahead"

// sparedByAhead are bytes that downloading ahead leaves free on a disk, beside what the packages take when they are
// installed.
const sparedByAhead = 256 << 20

func (a *apt) spare() (int64, error) {
	dir, err := a.files.Beneath(path.Dir(aptAhead))
	if err != nil {
		return 0, err
	}
	defer dir.Close()
	free, _, err := dir.Free()
	return free - sparedByAhead, err
}

func groupDir(n int) string { return fmt.Sprintf("%s/%d", aptAhead, n) }

// download lets apt-get fetch packages, which needs no lock, with apt's own proxies, mirrors, checks and user. The
// directory belongs to that user until they are there, and then to root.
func (a *apt) download(ctx context.Context, n int, changes []host.PackageChange) error {
	dir, owner := groupDir(n), 0
	if info, err := a.files.Lstat(aptArchives + "/partial"); err == nil {
		owner = info.UID
	}
	fetch := []string{"env", "--chdir=" + dir, "apt-get", "-q", "-o", "Acquire::Retries=0", "download", "--"}
	for _, c := range changes {
		fetch = append(fetch, c.Name+"="+c.New)
	}
	for _, argv := range [][]string{
		{"rm", "-rf", "--one-file-system", "--", dir},
		{"install", "-d", "-m", "0755", "--", aptAhead},
		{"install", "-d", "-m", "0700", "-o", strconv.Itoa(owner), "--", dir},
		fetch,
		{"chown", "--no-dereference", "0:0", "--", dir},
	} {
		if err := a.must(ctx, argv); err != nil {
			return err
		}
	}
	return nil
}

// must runs a command of downloading ahead, which changes nothing that a step has read.
func (a *apt) must(ctx context.Context, argv []string) error {
	out, err := a.run(ctx, true, argv...)
	if err == nil && out.Code != 0 {
		err = host.Complaint(out)
	}
	return err
}

// adopt moves the files of packages into apt's archives, where apt-get finds them complete. The directory is root's by
// then, and a name in it that is no file of root's stays there.
func (a *apt) adopt(ctx context.Context, n int, changes []host.PackageChange) error {
	dir := groupDir(n)
	names, err := a.files.ReadDir(dir)
	if err != nil {
		return err
	}
	argv := []string{"mv", "-f", "-t", aptArchives, "--"}
	for _, name := range names {
		info, err := a.files.Lstat(dir + "/" + name)
		if err == nil && info.IsRegular() && info.UID == 0 && info.Links == 1 &&
			slices.ContainsFunc(changes, func(c host.PackageChange) bool { return isFileOf(name, c) }) {
			argv = append(argv, dir+"/"+name)
		}
	}
	if len(argv) == len([]string{"mv", "-f", "-t", aptArchives, "--"}) {
		return nil
	}
	return a.must(ctx, argv)
}

// isFileOf reports whether a file has the name that apt gives the new version of a package:
// name_version_architecture.deb with signs of the version escaped as in URLs.
func isFileOf(file string, c host.PackageChange) bool {
	base, ok := strings.CutSuffix(file, ".deb")
	parts := strings.Split(base, "_")
	if !ok || len(parts) != 3 {
		return false
	}
	name, arch, _ := strings.Cut(c.Name, ":")
	version, err := url.PathUnescape(parts[1])
	return err == nil && parts[0] == name && version == c.New && (arch == "" || arch == parts[2])
}

func (a *apt) discard(ctx context.Context) error {
	return a.must(ctx, []string{"rm", "-rf", "--one-file-system", "--", aptAhead})
}
