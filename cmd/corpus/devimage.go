package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/corpus-agent/corpus-agent/artifact/cloud"
	"github.com/corpus-agent/corpus-agent/artifact/durable"
	"github.com/corpus-agent/corpus-agent/artifact/process"
	"github.com/corpus-agent/corpus-agent/artifact/publish/releases"
	"github.com/corpus-agent/corpus-agent/artifact/walk"
	"github.com/corpus-agent/corpus-agent/packaging/remote"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// devImage is the image of guests of a developer environment.
type devImage struct {
	name   string // in the cloud
	rootfs string // file from which it is made; empty for none
	suite  string // suite of Debian from which it is made; empty for none
	mirror string

	release cloud.Image // of an image that is to be made; the digest is known after publish
}

// plan chooses the image, and returns what is to be made. Without guests to create, only an image of a file is made.
func (i *devImage) plan(data *cloud.Cloud, creates bool) ([]remote.Change, error) {
	version, from := "1", "debootstrap "+i.suite
	switch {
	case i.rootfs != "":
		sum, err := sumOf(i.rootfs)
		if err != nil {
			return nil, err
		}
		version, from = sum[:12], i.rootfs
		if i.name == "" {
			i.name = "rootfs"
		}
	case i.suite != "":
		if i.name == "" {
			i.name = i.suite
		}
		if err := artifactSuite(i.suite); err != nil {
			return nil, err
		}
	default:
		return nil, i.known(data, creates)
	}
	if err := cloud.CheckName(i.name); err != nil {
		return nil, fmt.Errorf("the image's name: %w", err)
	}
	i.release = cloud.Image{Project: "image-" + i.name, Version: version}
	if now := data.Images[i.name]; now.Project == i.release.Project && now.Version == version {
		i.release = cloud.Image{}
		return nil, nil
	}
	if i.suite != "" {
		if _, err := exec.LookPath("debootstrap"); err != nil {
			return nil, diag.Program.Hint(fmt.Errorf("finding debootstrap: %w", err),
				"install it (apt install debootstrap), or give --rootfs FILE")
		}
	}
	return []remote.Change{{What: "image " + i.name, To: from}}, nil
}

func artifactSuite(suite string) error {
	if strings.Trim(suite, "abcdefghijklmnopqrstuvwxyz0123456789-") == "" && suite[0] != '-' {
		return nil
	}
	return diag.Usage.Hint(fmt.Errorf("--debootstrap %s is not a suite", suite), "give one such as bookworm")
}

// known chooses an image that the cloud has.
func (i *devImage) known(data *cloud.Cloud, creates bool) error {
	all := sorted(data.Images)
	if i.name == "" && len(all) == 1 {
		i.name = all[0]
	}
	if _, there := data.Images[i.name]; there || !creates && i.name == "" {
		return nil
	}
	if i.name == "" {
		return diag.Cloud.Hint(errors.New("no image was given for new guests"),
			"give --debootstrap bookworm, --rootfs FILE or --image NAME; there are: %s", strings.Join(all, ", "))
	}
	hint := diag.DidYouMean(i.name, all)
	if hint == "" {
		hint = "give --debootstrap SUITE or --rootfs FILE, or enter a release: corpus guest image NAME PROJECT VERSION " +
			"--cloud dev"
	}
	return diag.Cloud.Hint(fmt.Errorf("there is no image %s", i.name), "%s", hint)
}

func sumOf(file string) (string, error) {
	f, err := walk.OpenGiven(file)
	if err != nil {
		return "", diag.Usage.Hint(fmt.Errorf("reading the root file system: %w", err), "give a tar archive")
	}
	defer f.Close()
	h := sha256.New()
	_, err = io.Copy(h, f)
	return fmt.Sprintf("%x", h.Sum(nil)), err
}

// enter enters the image into a cloud.
func (i *devImage) enter(data *cloud.Cloud) {
	if i.release.Project != "" {
		data.Images[i.name] = i.release
	}
}

// publish makes the image and publishes it, unless it is there.
func (i *devImage) publish(ctx context.Context, p *program) error {
	if i.release.Project == "" {
		return nil
	}
	if r, err := (&clouds{program: p}).releaseOf(ctx, i.release.Project, i.release.Version); err == nil {
		i.release.Digest = string(r.Digest) // of a command that was interrupted after that
		return nil
	}
	// Beside the store: debootstrap refuses a file system without devices, as /tmp often is, and /tmp may be in memory.
	dir, done, err := durable.ScratchIn(filepath.Dir(p.keys))
	if err != nil {
		return err
	}
	defer done()
	tree := filepath.Join(dir, "tree")
	if err := durable.MkdirAll(tree, 0o755); err != nil {
		return err
	}
	if err := i.fill(ctx, p, dir, filepath.Join(tree, "rootfs.tar")); err != nil {
		return err
	}
	err = p.publishTree(ctx, tree, releases.Request{Project: i.release.Project, Version: i.release.Version, New: true,
		Plain: true}, true, startFlags{}) // a machine fetches nothing in blocks from its own disk
	if err != nil {
		return err
	}
	r, err := (&clouds{program: p}).releaseOf(ctx, i.release.Project, i.release.Version)
	i.release.Digest = string(r.Digest)
	return err
}

// fill writes the root file system.
func (i *devImage) fill(ctx context.Context, p *program, dir, to string) error {
	if i.suite != "" {
		return i.debootstrap(ctx, p, dir, to)
	}
	from, err := walk.OpenGiven(i.rootfs)
	if err != nil {
		return err
	}
	defer from.Close()
	into, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	h := sha256.New()
	_, err = io.Copy(io.MultiWriter(into, h), from)
	if err = errors.Join(err, into.Close()); err != nil {
		return err
	}
	if sum := fmt.Sprintf("%x", h.Sum(nil)); !strings.HasPrefix(sum, i.release.Version) {
		return diag.Busy.Hint(fmt.Errorf("%s was changed meanwhile", i.rootfs), "run the command again")
	}
	return nil
}

// devPackages returns the packages of a guest: git receives pushes.
func devPackages() string {
	return "systemd,systemd-sysv,dbus,openssh-server,ca-certificates,git,iproute2"
}

// debootstrap makes a root file system of Debian and packs it.
func (i *devImage) debootstrap(ctx context.Context, p *program, dir, to string) error {
	root := filepath.Join(dir, "root")
	words := []string{"debootstrap", "--variant=minbase", "--include=" + devPackages(), i.suite, root}
	if i.mirror != "" {
		words = append(words, i.mirror)
	}
	const tidy = `rm -f "$1"/etc/ssh/ssh_host_* "$1"/var/cache/apt/archives/*.deb`
	for _, argv := range [][]string{words, {"sh", "-c", tidy, "sh", root},
		{"tar", "--numeric-owner", "--xattrs", "-C", root, "-cf", to, "."}} {
		cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
		cmd.Env, cmd.Stdout, cmd.Stderr = process.Environ(), p.Err, p.Err
		if err := cmd.Run(); err != nil {
			return diag.Program.Hint(fmt.Errorf("making the image with %s: %w", argv[0], err),
				"see what it printed above; --mirror names another archive")
		}
	}
	return nil
}
