package guest

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/corpus-agent/corpus-agent/artifact/cloud"
	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// archived implements guest.archived: the disk of a guest that has left the node is in an archive, with which another
// node continues it. The disk stays.
type archived struct {
	Name string `sls:"name"`
	Disk string `sls:"disk,required"` // ID of the disk
	File string `sls:"file,required"` // the archive
}

// Valid returns an error for arguments that are not safe as parts of paths.
func (a *archived) Valid() error {
	for _, err := range []error{checkName(a.Name), checkID(a.Disk), checkPath("file", a.File)} {
		if err != nil {
			return err
		}
	}
	return nil
}

func (a *archived) Check(_ context.Context, h *host.Host) (module.Diff, error) {
	if err := a.Valid(); err != nil {
		return module.Diff{}, err
	}
	r, known, err := readRecord(h, a.Name)
	switch {
	case err != nil:
		return module.Diff{}, err
	case !known || r.disk() != a.Disk || r.Step != ready:
		text := fmt.Sprintf("this node has no disk %s of a guest %s: restore the guest from a backup, in an empty disk "+
			"(corpus guest move %s NODE --empty)", a.Disk, a.Name, a.Name)
		return module.Diff{Comment: "there is no such disk", Warnings: []string{text}}, nil
	}
	is, err := exists(h, a.File)
	if is || err != nil {
		return module.Diff{Comment: "the disk of guest " + a.Name + " is in " + a.File}, err
	}
	return module.Diff{Changes: value.NewMap("archive", a.File),
		Comment: "the disk of guest " + a.Name + " would be archived"}, nil
}

// Apply makes the archive. It gets its name only when it is complete and on the disk.
func (a *archived) Apply(ctx context.Context, h *host.Host, d module.Diff) (module.Report, error) {
	r, _, err := readRecord(h, a.Name)
	if err != nil {
		return module.Report{}, err
	}
	runs, err := runsOrStarts(ctx, h, r)
	if err != nil {
		return module.Report{}, err
	}
	if runs {
		return module.Report{}, diag.Container.Hint(fmt.Errorf("guest %s runs here, or starts at boot", a.Name),
			"guest.only stops guests that have left the node: let it run before this state")
	}
	if v := r.volume(); v != nil {
		if err := v.place(ctx, h); err != nil {
			return module.Report{}, err
		}
	}
	return module.Report{Changes: d.Changes, Comment: "the disk of guest " + a.Name + " is in " + a.File},
		a.pack(ctx, h, path.Join(cloud.Disks, a.Name))
}

// pack makes the archive of a directory. If that fails, the part of it that was made is removed.
func (a *archived) pack(ctx context.Context, h *host.Host, dir string) (err error) {
	partial := a.File + ".part"
	if err := errors.Join(refuseNested(ctx, h, a.Name, dir), removeFile(h, partial)); err != nil {
		return err
	}
	used, err := a.room(ctx, h, dir)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, removeFile(h, partial))
		}
	}()
	mode := fs.FileMode(0o600)
	err = h.Files.Write(partial, host.NewFile{Content: strings.NewReader(""), Mode: &mode, UID: -1, GID: -1})
	if err != nil {
		return err
	}
	for _, argv := range [][]string{{"tar", "--create", "--file", partial, "--directory", dir, "--numeric-owner",
		"--sparse", "--one-file-system", "--xattrs", "--xattrs-include=*", "--warning=no-file-ignored", "."},
		{"sync", partial}} {
		_, err := h.Tool(ctx, host.Tool{Argv: argv, Limit: timeFor(used), Asides: []string{"file changed as we read it"},
			Changes: host.Subject{Kind: host.KindCommand, Name: "archive of the disk of guest " + a.Name}})
		if err != nil {
			hint := "correct what " + argv[0] + " names; the next run makes the archive"
			if isFull(err) {
				hint = "make room on the disk of " + path.Dir(a.File)
			}
			return host.Failed(diag.Container, err, "archiving the disk of guest "+a.Name, hint)
		}
	}
	return h.Files.Rename(partial, a.File)
}

// isFull reports whether a program failed since a file system, or the limit of a guest, is full.
func isFull(err error) bool {
	return strings.Contains(err.Error(), "No space left on device") || strings.Contains(err.Error(), "quota exceeded")
}

// timeFor returns how long work on a disk with so much content may take: a slow disk moves one MiB in a second.
func timeFor(bytes int64) time.Duration { return hour + time.Duration(bytes>>20)*time.Second }

// reserve is what an archive leaves free on the file system of the node, besides an eighth of its size.
const reserve = 64 << 20

// room returns how much a directory uses, and an error if an archive of it does not fit beside it.
func (a *archived) room(ctx context.Context, h *host.Host, dir string) (used int64, err error) {
	out, err := h.Tool(ctx, host.Tool{Argv: []string{"du", "--summarize", "--one-file-system", "--block-size=1", dir},
		Limit: hour, Package: "coreutils"})
	if err != nil {
		return 0, host.Failed(diag.Container, err, "reading the size of guest "+a.Name, "see `du "+dir+"`")
	}
	number, _, _ := strings.Cut(out, "\t")
	if used, err = strconv.ParseInt(number, 10, 64); err != nil {
		return 0, diag.Container.Hint(fmt.Errorf("du prints no size of %s", dir), "see what it prints: %q", out)
	}
	to, err := h.Files.Beneath(path.Dir(a.File))
	if err != nil {
		return 0, err
	}
	defer to.Close()
	free, _, err := to.Free()
	if need := used + used/8 + reserve; err == nil && free < need {
		err = diag.Container.Hint(fmt.Errorf("%s has %s free, and the archive of guest %s needs %s", path.Dir(a.File),
			diag.Size(free), a.Name, diag.Size(need)), "make room there; the next run makes the archive")
	}
	return used, err
}

// archivesOf returns the archives of the disks of a guest. Other files with names that begin with that of the guest
// are not the agent's.
func archivesOf(h *host.Host, guest string) (files []string, err error) {
	const dir = cloud.Disks
	there, err := exists(h, dir)
	if err != nil || !there {
		return nil, err
	}
	names, err := h.Files.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		rest, of := strings.CutPrefix(name, guest+"-")
		disk, is := strings.CutSuffix(strings.TrimSuffix(rest, ".part"), ".tar")
		if !of || !is || checkID(disk) != nil {
			continue
		}
		info, err := h.Files.Lstat(path.Join(dir, name))
		if err != nil {
			return nil, err
		}
		if info.IsRegular() {
			files = append(files, path.Join(dir, name))
		}
	}
	return files, nil
}

// removeFile removes a file, if it exists.
func removeFile(h *host.Host, file string) error {
	is, err := exists(h, file)
	if err != nil || !is {
		return err
	}
	return h.Files.Remove(file)
}
