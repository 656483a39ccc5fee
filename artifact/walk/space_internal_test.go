package walk

import (
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

func TestSpaceCountsInFragments(t *testing.T) {
	st := unix.Statfs_t{Bsize: 1 << 20, Frsize: 4096, Blocks: 100, Bfree: 10, Bavail: 8, Files: 50, Ffree: 7,
		Flags: unix.ST_RDONLY}
	s := spaceOf(&st)
	if want := (Space{Bytes: 40960, Unreserved: 32768, Files: 7, ReadOnly: true}); s != want {
		t.Errorf("got %+v, want %+v", s, want)
	}
	if s.For(0) != 40960 || s.For(1000) != 32768 {
		t.Errorf("root has %d bytes, others have %d", s.For(0), s.For(1000))
	}
}

func TestAFilesystemWithoutASizeHasNoLimit(t *testing.T) {
	proc, err := SpaceAt("/proc")
	if err != nil || proc.Bytes < 1<<60 || proc.Unreserved < 1<<60 || proc.Bytes+proc.Bytes < 0 {
		t.Errorf("/proc has %+v, %v", proc, err)
	}
}

func TestSpaceOfAFileIsThatOfItsPath(t *testing.T) {
	dir, err := os.Open("/proc/self")
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	byFile, err := SpaceFor(dir)
	byPath, other := SpaceAt("/proc/self")
	if err != nil || other != nil || byFile != byPath {
		t.Errorf("of the file %+v, %v; of the path %+v, %v", byFile, err, byPath, other)
	}
	if _, err := SpaceAt(t.TempDir() + "/absent"); err == nil || os.IsPermission(err) {
		t.Errorf("a path that does not exist gives %v", err)
	}
}
