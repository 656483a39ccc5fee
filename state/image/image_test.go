package image_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/host/hosttest"
	"github.com/corpus-agent/corpus-agent/state/host/machine"
	"github.com/corpus-agent/corpus-agent/state/image"
)

// memory keeps contents in memory, by themselves.
type memory map[string][]byte

func (m memory) Keep(r io.Reader, _ int64) ([]string, string, error) {
	data, err := io.ReadAll(r)
	m[string(data)] = data
	return []string{string(data)}, "", err
}

func (m memory) Open(pieces []string) (io.ReadCloser, error) {
	var all []byte
	for _, p := range pieces {
		all = append(all, m[p]...)
	}
	return io.NopCloser(bytes.NewReader(all)), nil
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func newHost(t *testing.T) (*host.Host, string) {
	t.Helper()
	root := t.TempDir()
	hosttest.Tree(t, root)
	h, err := machine.New(host.Options{Root: root, Commands: quiet{}})
	must(t, err)
	return h, root
}

// quiet is a fake of host.Commands whose commands succeed and do nothing.
type quiet struct{}

func (quiet) Allowed(string) error { return nil }
func (quiet) Run(context.Context, host.Command) (host.Output, error) {
	return host.Output{}, nil
}

// TestRoundTrip changes a subject of each kind that is kept in files, and restores it.
func TestRoundTrip(t *testing.T) {
	write := func(path, text string) func(*testing.T, string) {
		return func(t *testing.T, root string) { hosttest.Put(t, filepath.Join(root, path), text, 0o644) }
	}
	for _, test := range []struct {
		name    string
		subject host.Subject
		before  func(t *testing.T, root string)
		change  func(t *testing.T, root string)
	}{
		{"a changed file", host.Subject{Kind: host.KindFile, Name: "/etc/f"}, write("etc/f", "old"),
			func(t *testing.T, root string) {
				write("etc/f", "new")(t, root)
				must(t, os.Chmod(filepath.Join(root, "etc/f"), 0o4711))
			}},
		{"a new file", host.Subject{Kind: host.KindFile, Name: "/etc/f"}, nil, write("etc/f", "new")},
		{"a removed file", host.Subject{Kind: host.KindFile, Name: "/etc/f"}, write("etc/f", "old"),
			func(t *testing.T, root string) { must(t, os.Remove(filepath.Join(root, "etc/f"))) }},
		{"a file replaced by a directory", host.Subject{Kind: host.KindFile, Name: "/etc/f"}, write("etc/f", "old"),
			func(t *testing.T, root string) {
				must(t, os.Remove(filepath.Join(root, "etc/f")))
				must(t, os.Mkdir(filepath.Join(root, "etc/f"), 0o700))
			}},
		{"a changed link", host.Subject{Kind: host.KindFile, Name: "/etc/l"}, func(t *testing.T, root string) {
			must(t, os.Symlink("there", filepath.Join(root, "etc/l")))
		},
			func(t *testing.T, root string) {
				must(t, os.Remove(filepath.Join(root, "etc/l")))
				must(t, os.Symlink("elsewhere", filepath.Join(root, "etc/l")))
			}},
		{"a removed tree", host.Subject{Kind: host.KindTree, Name: "/home/alice"}, func(t *testing.T, root string) {
			write("home/alice/a/b/c", "deep")(t, root)
			must(t, os.Chmod(filepath.Join(root, "home/alice/a"), 0o1750))
			must(t, os.Symlink("a/b", filepath.Join(root, "home/alice/l")))
		}, func(t *testing.T, root string) { must(t, os.RemoveAll(filepath.Join(root, "home/alice"))) }},
		{"a removed user", host.Subject{Kind: host.KindUser, Name: "daemon"}, nil, func(t *testing.T, root string) {
			write("etc/passwd",
				"root:x:0:0:root:/root:/bin/bash\nalice:x:1000:1000:Alice A,12,34,56,staff,more:/home/alice:/bin/sh\n")(t, root)
			write("etc/shadow", "root:*:19000:0:99999:7:::\nalice:$6$abc$def:19000:0:99999:7:::\n")(t, root)
		}},
		{"a new member of a group", host.Subject{Kind: host.KindGroup, Name: "games"}, nil,
			func(t *testing.T, root string) {
				write("etc/group", "root:x:0:\ndaemon:x:1:\nadm:x:4:alice\nusers:x:100:alice\ngames:x:60:alice\nalice:x:1000:\n")(t,
					root)
			}},
		{"an enabled unit", host.Subject{Kind: host.KindBoot, Name: "web.service"},
			write("etc/systemd/system/x.target.wants/other", ""), func(t *testing.T, root string) {
				must(t, os.MkdirAll(filepath.Join(root, "etc/systemd/system/new.target.wants"), 0o755))
				must(t, os.Symlink("/lib/systemd/system/web.service", filepath.Join(root,
					"etc/systemd/system/new.target.wants/web.service")))
				must(t, os.Symlink("/dev/null", filepath.Join(root, "etc/systemd/system/web.service")))
				must(t, os.MkdirAll(filepath.Join(root, "etc/rc3.d"), 0o755))
				must(t, os.Symlink("../init.d/web", filepath.Join(root, "etc/rc3.d/S01web")))
			}},
		{"a new alternative", host.Subject{Kind: host.KindAlternative, Name: "pager"},
			write("etc/alternatives/README", ""), func(t *testing.T, root string) {
				write("var/lib/dpkg/alternatives/pager",
					"auto\n/usr/bin/pager\npager.1\n/usr/share/man/pager.1\n\n/bin/cat\n50\n\n\n")(t, root)
				must(t, os.Symlink("/bin/cat", filepath.Join(root, "etc/alternatives/pager")))
				must(t, os.MkdirAll(filepath.Join(root, "usr/bin"), 0o755))
				must(t, os.Symlink("/etc/alternatives/pager", filepath.Join(root, "usr/bin/pager")))
			}},
	} {
		t.Run(test.name, func(t *testing.T) {
			h, root := newHost(t)
			must(t, os.MkdirAll(filepath.Join(root, "var/lib/dpkg/alternatives"), 0o755))
			if test.before != nil {
				test.before(t, root)
			}
			kept := memory{}
			before, err := image.Taker{Host: h, Keep: kept}.Take(context.Background(), test.subject)
			must(t, err)
			test.change(t, root)
			after, err := image.Taker{Host: h}.Take(context.Background(), test.subject)
			must(t, err)
			if after.Same(before) {
				t.Fatalf("the image does not show the change: %+v", after)
			}
			restore(t, h, kept, test.subject, before, after)
			again, err := image.Taker{Host: h}.Take(context.Background(), test.subject)
			must(t, err)
			for _, name := range image.Names(before, after, again) {
				if b, a := before.Part(name), again.Part(name); !a.Identical(b) && !strings.HasPrefix(name, "/etc/rc3.d") {
					t.Errorf("%s is %+v, want %+v", name, a, b)
				}
			}
		})
	}
}

// restore restores all parts that differ: it removes parts, the deepest first, and then creates others.
func restore(t *testing.T, h *host.Host, kept memory, s host.Subject, before, after image.Image) {
	t.Helper()
	p := image.Putter{Host: h, Content: kept}
	names := image.Names(before, after)
	for i := range names {
		if name := names[len(names)-1-i]; before.Part(name).Type == image.Absent && after.Part(name).Type != image.Absent {
			must(t, p.Put(context.Background(), s, before.Part(name)))
		}
	}
	for _, name := range names {
		if before.Part(name).Type != image.Absent && !before.Part(name).Identical(after.Part(name)) {
			must(t, p.Put(context.Background(), s, before.Part(name)))
		}
	}
}

func TestExtendedAttributesAreRestored(t *testing.T) {
	h, root := newHost(t)
	file := filepath.Join(root, "etc/f")
	hosttest.Put(t, file, "x", 0o644)
	if err := unix.Setxattr(file, "user.kept", []byte("old"), 0); err != nil {
		t.Skipf("this filesystem has no extended attributes: %v", err)
	}
	kept, s := memory{}, host.Subject{Kind: host.KindFile, Name: "/etc/f"}
	before, err := image.Taker{Host: h, Keep: kept}.Take(context.Background(), s)
	must(t, err)
	must(t, unix.Setxattr(file, "user.kept", []byte("new"), 0))
	must(t, unix.Setxattr(file, "user.more", []byte("new"), 0))
	must(t, image.Putter{Host: h, Content: kept}.Put(context.Background(), s, before.Parts[0]))
	if again, err := (image.Taker{Host: h}).Take(context.Background(), s); err != nil || !again.Same(before) {
		t.Errorf("the attributes are %q, want %q", again.Parts[0].Xattrs, before.Parts[0].Xattrs)
	}
}

func TestPropertiesThatAreNotUndone(t *testing.T) {
	h, root := newHost(t)
	hosttest.Put(t, filepath.Join(root, "etc/d/mine"), "x", 0o644)
	p := image.Putter{Host: h, Content: memory{}}
	for name, part := range map[string]image.Part{
		"a directory that is not empty": {Name: "/etc/d", Type: image.Absent},
		"content without a copy":        {Name: "/etc/f", Type: image.File, Lost: "it is too large"},
		"a device":                      {Name: "/etc/f", Type: image.Special},
	} {
		var stays image.Stays
		if err := p.Put(context.Background(), host.Subject{Kind: host.KindFile, Name: part.Name}, part); !errors.As(err,
			&stays) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := os.Stat(filepath.Join(root, "etc/d/mine")); err != nil {
		t.Error(err)
	}
}

func TestFilesOfProcAreReadCompletely(t *testing.T) {
	h, err := machine.New(host.Options{})
	must(t, err)
	want, err := os.ReadFile("/proc/sys/net/ipv4/ip_default_ttl")
	if err != nil {
		t.Skipf("this machine has no such setting: %v", err)
	}
	i, err := image.Taker{Host: h}.Take(context.Background(), host.Subject{Kind: host.KindSysctl,
		Name: "net.ipv4.ip_default_ttl"})
	if err != nil || i.Parts[0].Text != strings.TrimSpace(string(want)) {
		t.Errorf("the setting is %+v, %v, want %q", i.Parts, err, want)
	}
}

// TestSparseFilesAreNotRead takes an image of a sparse file of 1 TiB.
func TestSparseFilesAreNotRead(t *testing.T) {
	h, root := newHost(t)
	file := filepath.Join(root, "etc/large")
	must(t, os.WriteFile(file, []byte("text\n"), 0o644))
	if err := os.Truncate(file, 1<<40); err != nil {
		t.Skip("this filesystem has no such files:", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	take := func() image.Image {
		var taken image.Image
		var err error
		done := make(chan bool)
		go func() {
			taken, err = image.Taker{Host: h}.Take(ctx, host.Subject{Kind: host.KindFile, Name: "/etc/large"})
			close(done)
		}()
		select {
		case <-done:
		case <-ctx.Done():
			t.Fatal("the image takes more than a minute")
		}
		must(t, err)
		return taken
	}
	before := take()
	must(t, os.Chmod(file, 0o600))
	if after := take(); after.Parts[0].Sum != before.Parts[0].Sum {
		t.Errorf("a change of the mode changes the sum of the content: %q, was %q", after.Parts[0].Sum, before.Parts[0].Sum)
	}
	f, err := os.OpenFile(file, os.O_WRONLY, 0)
	must(t, err)
	_, err = f.WriteAt([]byte("x"), 1<<30)
	must(t, errors.Join(err, f.Close(), os.Chtimes(file, time.Time{}, time.Unix(1, 1))))
	if after := take(); after.Parts[0].Sum == before.Parts[0].Sum {
		t.Error("a change of the content is not in the image")
	}
}
