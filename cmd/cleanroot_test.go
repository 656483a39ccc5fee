//go:build integration

package cmd_test

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"

	"github.com/corpus-agent/corpus-agent/packaging/builder"
)

// system is the base system of clean roots.
const system = "debian/bookworm"

// cleanRoot is a temporary Debian tree that programs see as /.
type cleanRoot struct {
	*builder.Base
	t *testing.T
}

// cleaner returns a function that makes clean roots. The base systems are kept in CORPUS_CACHE if it is set, and
// otherwise until the tests end.
func cleaner(t *testing.T) func(packages ...string) cleanRoot {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("this test needs root: it makes a clean root")
	}
	needDebootstrap(t)
	cache := os.Getenv("CORPUS_CACHE")
	if cache == "" {
		cache = filepath.Join(bin(t), "bases")
		t.Setenv("CORPUS_CACHE", cache)
	}
	return func(packages ...string) cleanRoot {
		t.Helper()
		var log bytes.Buffer
		base, err := builder.OpenBase(t.Context(), builder.Opening{System: system, Packages: packages, Cache: cache,
			Work: t.TempDir(), Log: &log})
		if err != nil {
			t.Fatalf("making a clean root with %v: %v\n%s", packages, err, log.String())
		}
		return cleanRoot{base, t}
	}
}

// needDebootstrap downloads debootstrap from Debian's archive for this test if it is not installed. It consists of a
// few shell scripts, so the machine is not changed.
func needDebootstrap(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("debootstrap"); err == nil {
		return
	}
	dir := t.TempDir()
	fetch := exec.Command("sh", "-c", "apt-get download debootstrap && dpkg-deb -x debootstrap_*.deb .")
	fetch.Dir = dir
	if out, err := fetch.CombinedOutput(); err != nil {
		t.Skipf("debootstrap is not installed, and cannot be downloaded from Debian's archive: %v\n%s", err, out)
	}
	t.Setenv("DEBOOTSTRAP_DIR", filepath.Join(dir, "usr/share/debootstrap"))
	t.Setenv("PATH", filepath.Join(dir, "usr/sbin")+":"+os.Getenv("PATH"))
}

// try runs a program in the root.
func (r cleanRoot) try(args ...string) (string, error) {
	var out bytes.Buffer
	err := r.Run(r.t.Context(), builder.Command{Dir: r.Root, Args: args, Log: &out})
	return out.String(), err
}

func (r cleanRoot) must(args ...string) string {
	r.t.Helper()
	out, err := r.try(args...)
	if err != nil {
		r.t.Fatalf("%v: %v\n%s", args, err, out)
	}
	return out
}

// copyIn copies a file or a directory into the root.
func (r cleanRoot) copyIn(from, to string) {
	r.t.Helper()
	target := filepath.Join(r.Root, to)
	if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
		r.t.Fatal(err)
	}
	if out, err := exec.Command("cp", "-rT", from, target).CombinedOutput(); err != nil {
		r.t.Fatalf("%v: %s", err, out)
	}
}

// serve starts a service in the root until the test ends, and returns its URL when it responds.
func (r cleanRoot) serve(variable string, args ...string) string {
	r.t.Helper()
	address := freeAddress(r.t)
	ctx, stop := context.WithCancel(context.Background())
	var log bytes.Buffer
	ended := make(chan error, 1)
	go func() {
		ended <- r.Run(ctx, builder.Command{Dir: r.Root, Args: args, Log: &log, Env: []string{variable + "=" + address}})
	}()
	r.t.Cleanup(func() { stop(); <-ended })
	url := "http://" + address + "/"
	for range 600 {
		select {
		case err := <-ended:
			ended <- err
			r.t.Fatalf("%v ended: %v\n%s", args, err, log.String())
		case <-time.After(100 * time.Millisecond):
		}
		if resp, err := http.Get(url); err == nil {
			_ = resp.Body.Close()
			return url
		}
	}
	r.t.Fatalf("%v does not respond\n%s", args, log.String())
	return ""
}

func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// ask makes an HTTP request; with a body it is a POST.
func ask(t *testing.T, url, body string) string {
	t.Helper()
	resp, err := http.Get(url)
	if body != "" {
		resp, err = http.Post(url, "text/plain", strings.NewReader(body))
	}
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%s answers %s %q, %v", url, resp.Status, data, err)
	}
	return string(data)
}

// imageRoot unpacks an image with its base into a root, and returns the root and the command of the image.
func imageRoot(t *testing.T, file string) (cleanRoot, []string) {
	t.Helper()
	dir := t.TempDir()
	if out, err := exec.Command("tar", "-xf", file, "-C", dir).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	index, err := layout.ImageIndexFromPath(dir)
	if err != nil {
		t.Fatal(err)
	}
	list, err := index.IndexManifest()
	if err != nil || len(list.Manifests) != 1 {
		t.Fatalf("the image's index is %+v, %v", list, err)
	}
	image, err := index.Image(list.Manifests[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	config, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	root := t.TempDir()
	flat := mutate.Extract(image)
	defer flat.Close()
	unpack := exec.Command("tar", "-x", "--numeric-owner", "-p", "-C", root)
	unpack.Stdin = flat
	if out, err := unpack.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return cleanRoot{&builder.Base{Root: root}, t}, config.Config.Cmd
}
