package blobs_test

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/publish/blobs"
	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/artifact/store/s3"
	"github.com/corpus-agent/corpus-agent/artifact/store/storetest/fakes3"
)

// packed writes content to a file as packing does, beside a stage in a folder.
func packed(t *testing.T, s store.Store, content []byte) *blobs.Stage {
	t.Helper()
	f, err := os.Create(filepath.Join(t.TempDir(), "artifact"))
	if err != nil {
		t.Fatal(err)
	}
	stage, err := blobs.NewStage(t.Context(), s, "deploy/app", f.Name())
	if err != nil {
		t.Fatal(err)
	}
	_, err = io.CopyBuffer(struct{ io.Writer }{io.MultiWriter(f, stage)}, struct{ io.Reader }{bytes.NewReader(content)},
		make([]byte, 3<<20))
	if err = errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
	return stage
}

func listed(t *testing.T, s store.Store) (keys []string) {
	t.Helper()
	for info, err := range s.List(t.Context(), "") {
		if err != nil {
			t.Fatal(err)
		}
		keys = append(keys, info.Key)
	}
	return keys
}

// TestStageUploadsAheadAndLeavesNothing checks that a bucket has pieces that garbage collection knows before the object
// is made, the object with its content afterwards, and nothing else in the end, whether the object was made or not.
func TestStageUploadsAheadAndLeavesNothing(t *testing.T) {
	server := fakes3.Start(t, nil)
	s := s3.New(s3.Options{Bucket: fakes3.Bucket, Endpoint: "http://" + server.Host})
	content := make([]byte, 17<<20)
	_, _ = rand.NewChaCha8([32]byte{}).Read(content[:9<<20]) // never fails
	digest := artifact.NewDigest(sha256.Sum256(content))
	sent := make(chan int64, 8)

	stage := packed(t, s, content)
	stage.Show(func(done int64) { sent <- done })
	for done := int64(0); done < 16<<20; {
		done = <-sent
	}
	there, err := blobs.List(t.Context(), s, "deploy/app/")
	if err != nil || len(there.Objects) != 2 {
		t.Fatalf("while it is packed, garbage collection sees %v, %v", there.Objects, err)
	}
	if err := stage.Close(); err != nil {
		t.Fatal(err)
	}
	if left := listed(t, s); len(left) > 0 {
		t.Errorf("a stage that was given up leaves %v", left)
	}

	stage = packed(t, s, content)
	err = errors.Join(stage.Put(t.Context(), "deploy/app/whole", int64(len(content)), digest), stage.Close())
	if err != nil {
		t.Fatal(err)
	}
	if left := listed(t, s); len(left) != 1 || left[0] != "deploy/app/whole" {
		t.Errorf("the store has %v", left)
	}
	body, _, err := s.Get(t.Context(), "deploy/app/whole", 0)
	if err != nil {
		t.Fatal(err)
	}
	defer body.Close()
	if got, err := io.ReadAll(body); err != nil || !bytes.Equal(got, content) {
		t.Errorf("the object has other bytes (%v)", err)
	}
}
