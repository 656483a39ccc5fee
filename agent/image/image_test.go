package image_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/agent/image"
	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/artifacttest"
	"github.com/corpus-agent/corpus-agent/artifact/publish/releases"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
)

// TestImagesAreVerified fetches an image, and checks that changed, withdrawn and unsigned ones are refused.
func TestImagesAreVerified(t *testing.T) {
	ctx := context.Background()
	repo := artifacttest.New(t)
	good := repo.Release("image-bookworm", "1.0", "prod", artifacttest.Files{"rootfs.tar": "a file system"})
	bad := repo.Release("image-bookworm", "1.1", "prod", artifacttest.Files{"rootfs.tar": "another one"})
	trusted, images := t.TempDir(), filepath.Join(t.TempDir(), "images")
	if err := trust.Pin(trusted, repo.Root()); err != nil {
		t.Fatal(err)
	}
	pull := func(version string, digest artifact.Digest) (string, error) {
		return image.Pull(ctx, repo.Store, trusted, images, image.Wanted{Project: "image-bookworm", Version: version,
			Digest: digest})
	}
	for range 2 {
		dir, err := pull("1.0", good.Digest)
		if err != nil {
			t.Fatal(err)
		}
		if data, err := os.ReadFile(filepath.Join(dir, "rootfs.tar")); err != nil || string(data) != "a file system" {
			t.Errorf("the image has %q (%v)", data, err)
		}
	}
	rootfs := filepath.Join(images, good.Digest.Hex(), "rootfs.tar")
	for _, damage := range []func() error{
		func() error { // no user may write to the file
			return errors.Join(os.Remove(rootfs), os.WriteFile(rootfs, []byte("a file systen"), 0o644))
		},
		func() error { return os.Remove(rootfs) },
		func() error { return os.RemoveAll(filepath.Dir(rootfs)) },
		func() error { return os.Remove(filepath.Dir(rootfs) + ".list") },
		func() error { return os.WriteFile(filepath.Dir(rootfs)+".list", []byte("x"), 0o600) },
	} {
		if err := damage(); err != nil {
			t.Fatal(err)
		}
		if _, err := pull("1.0", good.Digest); err != nil {
			t.Fatal(err)
		}
		if data, err := os.ReadFile(rootfs); err != nil || string(data) != "a file system" {
			t.Errorf("after damage the image has %q (%v)", data, err)
		}
	}
	if _, err := pull("1.1", good.Digest[:len(good.Digest)-1]+"0"); err == nil {
		t.Error("an image with another digest was fetched")
	}
	repo.Replace(trust.ObjectKey(bad), []byte("no archive"))
	var refused *trust.Refused
	if _, err := pull("1.1", bad.Digest); !errors.As(err, &refused) {
		t.Errorf("an image that was changed in the store: %v", err)
	}
	if _, err := releases.Yank(ctx, repo.Publisher, "image-bookworm", "1.1", "a hole"); err != nil {
		t.Fatal(err)
	}
	if _, err := pull("1.1", bad.Digest); err == nil || !strings.Contains(err.Error(), "was withdrawn: a hole") {
		t.Errorf("a withdrawn image: %v", err)
	}
	entries, err := os.ReadDir(images)
	if err != nil || len(entries) != 2 { // the image and its list
		t.Errorf("the directory has more than the good image: %v (%v)", entries, err)
	}
	if left, err := os.ReadDir(trusted); err != nil || len(left) > 2 {
		t.Errorf("the directory of trust was written to: %v (%v)", left, err)
	}
}
