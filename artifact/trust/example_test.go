package trust_test

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/publish"
	"github.com/corpus-agent/corpus-agent/artifact/publish/releases"
	"github.com/corpus-agent/corpus-agent/artifact/publish/roots"
	"github.com/corpus-agent/corpus-agent/artifact/store/mem"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
)

// A host pins the store's first root, follows the roots that are signed from there on, and gets the bytes that the
// project's key signed.
func Example() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	publisher, root, err := published(ctx, dir, "port=80")
	if err != nil {
		fmt.Println(err)
		return
	}

	seen := filepath.Join(dir, "host")
	if err := trust.Pin(seen, root); err != nil {
		fmt.Println(err)
		return
	}
	client, err := trust.Open(publisher.Store, seen, time.Now)
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := client.Refresh(ctx); err != nil {
		fmt.Println(err)
		return
	}
	release, err := client.Resolve(ctx, artifact.Ref{Project: "myapp", Channel: "testing"})
	if err != nil {
		fmt.Println(err)
		return
	}
	file, err := os.Create(filepath.Join(dir, "artifact"))
	if err != nil {
		fmt.Println(err)
		return
	}
	verified, err := client.Fetch(ctx, release, file, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer verified.Close()
	content, err := tarredFile(verified.Reader())
	fmt.Printf("%s %s: %q, %v\n", release.Project, release.Version, content, err)
	// Output:
	// myapp 1.0: "port=80", <nil>
}

// published sets up a store in memory, with keys below dir, and publishes a version of myapp to testing.
func published(ctx context.Context, dir, content string) (p *publish.Publisher, root []byte, err error) {
	p = &publish.Publisher{Store: mem.New(), Keys: publish.Keyring{Dir: filepath.Join(dir, "keys")},
		Seen: filepath.Join(dir, "seen")}
	for _, role := range []string{"root", "targets", "snapshot", "timestamp"} {
		if _, err := p.Keys.New(role, 1); err != nil {
			return nil, nil, err
		}
	}
	if _, err := roots.Init(ctx, p, 0); err != nil {
		return nil, nil, err
	}
	file := filepath.Join(dir, "myapp-1.0.tar")
	if err := os.WriteFile(file, tarOf("app.conf", content), 0o644); err != nil {
		return nil, nil, err
	}
	if _, err := releases.Publish(ctx, p, releases.Request{Project: "myapp", Version: "1.0",
		File: file, Channel: "testing"}); err != nil {
		return nil, nil, err
	}
	root, err = os.ReadFile(filepath.Join(p.Keys.Dir, roots.RootName))
	return p, root, err
}

// tarOf returns an archive with one file.
func tarOf(name, content string) []byte {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	err := w.WriteHeader(&tar.Header{Name: name, Typeflag: tar.TypeReg, Mode: 0o644, Size: int64(len(content))})
	if err == nil {
		_, err = io.WriteString(w, content)
	}
	if err = errors.Join(err, w.Close()); err != nil {
		panic(err) // a buffer never returns an error
	}
	return b.Bytes()
}

// tarredFile reads the first file of an archive, and the rest of it.
func tarredFile(archive io.Reader) (string, error) {
	r := tar.NewReader(archive)
	if _, err := r.Next(); err != nil {
		return "", err
	}
	content, err := io.ReadAll(r)
	if err == nil {
		_, err = io.Copy(io.Discard, archive)
	}
	return string(content), err
}
