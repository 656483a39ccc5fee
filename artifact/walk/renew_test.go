package walk_test

import (
	"errors"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/corpus-agent/corpus-agent/artifact/walk"
)

// TestFilesOpenedByUsersAreReplaced has ann open a file for writing, and make a hard link to it, before root takes the
// file over.
func TestFilesOpenedByUsersAreReplaced(t *testing.T) {
	for name, c := range map[string]struct {
		uid, gid int
		mode     uint32
		take     func(d *walk.Dir) error
		new      bool
	}{
		"owner":          {ann, ann, 0o755, func(d *walk.Dir) error { return d.Chown("f", 0, 0) }, true},
		"only the owner": {ann, 0, 0o644, func(d *walk.Dir) error { return d.Chown("f", 0, -1) }, true},
		"group":          {0, 500, 0o664, func(d *walk.Dir) error { return d.Chmod("f", 0o644) }, true},
		"other group":    {0, 500, 0o664, func(d *walk.Dir) error { return d.Chown("f", 0, 0) }, true},
		"everyone":       {0, 0, 0o666, func(d *walk.Dir) error { return d.Chmod("f", 0o644) }, true},
		"to ann":         {0, 0, 0o644, func(d *walk.Dir) error { return d.Chown("f", ann, ann) }, false},
		"ann to bob":     {ann, ann, 0o644, func(d *walk.Dir) error { return d.Chown("f", ann+1, -1) }, true},
		"group to bob":   {0, 500, 0o664, func(d *walk.Dir) error { return d.Chown("f", ann+1, ann+1) }, true},
		"ann stays":      {ann, 500, 0o664, func(d *walk.Dir) error { return d.Chmod("f", 0o644) }, false},
		"root's":         {0, 0, 0o644, func(d *walk.Dir) error { return d.Chmod("f", 0o600) }, false},
		"still writable": {0, 500, 0o664, func(d *walk.Dir) error { return d.Chmod("f", 0o660) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			root := homes(t)
			file := root + "/srv/f"
			do(t, errors.Join(os.Mkdir(root+"/srv", 0o755), os.WriteFile(file, []byte("good\n"), 0o644),
				os.Chown(file, c.uid, c.gid), os.Chmod(file, os.FileMode(c.mode)),
				os.Link(file, root+"/srv/also")))
			_ = unix.Setxattr(file, "user.note", []byte("kept"), 0)
			held, err := os.OpenFile(file, os.O_RDWR, 0)
			do(t, err)
			defer held.Close()
			before, err := os.Stat(file)
			do(t, err)
			d, err := open(t, walk.Options{Safe: true}, root).OpenDir("/srv")
			do(t, err)
			do(t, errors.Join(c.take(d), d.Close()))
			_, err = held.WriteAt([]byte("EVIL\n"), 0)
			do(t, err)
			text, err := os.ReadFile(file)
			do(t, err)
			after, err := os.Stat(file)
			do(t, err)
			if os.SameFile(before, after) == c.new || c.new && string(text) != "good\n" {
				t.Errorf("the file is the same: %v, with the content %q", os.SameFile(before, after), text)
			}
			if !after.ModTime().Equal(before.ModTime()) && c.new {
				t.Errorf("the time of the file was %v and is now %v", before.ModTime(), after.ModTime())
			}
			if names, err := os.ReadDir(root + "/srv"); err != nil || len(names) != 2 {
				t.Errorf("the directory has %v, %v", names, err)
			}
		})
	}
}

// TestGivenFilesAreNew checks that Give, which refuses files with several names, also replaces the file of another
// user.
func TestGivenFilesAreNew(t *testing.T) {
	root := homes(t)
	file := root + "/srv/f"
	do(t, errors.Join(os.Mkdir(root+"/srv", 0o755), os.WriteFile(file, []byte("good\n"), 0o644), os.Chown(file, ann, ann)))
	held, err := os.OpenFile(file, os.O_RDWR, 0)
	do(t, err)
	defer held.Close()
	d, err := open(t, walk.Options{Safe: true}, root).OpenDir("/srv")
	do(t, err)
	do(t, errors.Join(d.Give("f", ann+1, ann+1), d.Close()))
	_, err = held.WriteAt([]byte("EVIL\n"), 0)
	do(t, err)
	if text, err := os.ReadFile(file); err != nil || string(text) != "good\n" {
		t.Errorf("the file has %q, %v", text, err)
	}
}

// TestFilesTakenOverByRootAreNotWritable checks that the mode of a user's file or directory no longer allows the user
// to write when root owns it.
func TestFilesTakenOverByRootAreNotWritable(t *testing.T) {
	for _, c := range []struct {
		dir         bool
		mode, after os.FileMode
		uid         int
	}{
		{false, 0o666, 0o644, 0}, {false, 0o664, 0o644, 0}, {false, 0o666, 0o666, ann + 1},
		{true, 0o777, 0o775, 0}, {true, 0o777 | os.ModeSticky, 0o777 | os.ModeSticky, 0}, {true, 0o775, 0o775, 0},
	} {
		root := homes(t)
		name := root + "/srv/x"
		do(t, os.Mkdir(root+"/srv", 0o755))
		if c.dir {
			do(t, os.Mkdir(name, 0o755))
		} else {
			do(t, os.WriteFile(name, nil, 0o644))
		}
		do(t, errors.Join(os.Chown(name, ann, ann), os.Chmod(name, c.mode)))
		d, err := open(t, walk.Options{Safe: true}, root).OpenDir("/srv")
		do(t, err)
		do(t, errors.Join(d.Chown("x", c.uid, -1), d.Close()))
		info, err := os.Stat(name)
		do(t, err)
		if is := info.Mode() &^ os.ModeDir; is != c.after {
			t.Errorf("directory %v with mode %v, given to %d, has mode %v", c.dir, c.mode, c.uid, is)
		}
	}
}

// TestCopyKeepsHoles checks that a copy of a user's sparse file uses no more disk space than the file.
func TestCopyKeepsHoles(t *testing.T) {
	root := homes(t)
	file := root + "/vault/sparse"
	do(t, errors.Join(os.WriteFile(file, []byte("x"), 0o644), os.Truncate(file, 1<<40), os.Chown(file, ann, ann)))
	d, err := open(t, walk.Options{Safe: true}, root).OpenDir("/vault")
	do(t, err)
	do(t, errors.Join(d.Chown("sparse", 0, 0), d.Close()))
	var st unix.Stat_t
	do(t, unix.Stat(file, &st))
	if st.Uid != 0 || st.Size != 1<<40 || st.Blocks > 64 {
		t.Errorf("owner %d, %d bytes in %d blocks", st.Uid, st.Size, st.Blocks)
	}
}

// TestLeases checks that a file with a lease is opened when the kernel has broken the lease, and that the error names
// the process with the lease.
func TestLeases(t *testing.T) {
	root := homes(t)
	held, err := os.OpenFile(root+"/vault/secret", os.O_RDWR, 0)
	do(t, err)
	defer held.Close()
	if _, err := unix.FcntlInt(held.Fd(), unix.F_SETLEASE, unix.F_WRLCK); err != nil {
		t.Skip("this filesystem has no leases:", err)
	}
	restore, err := os.ReadFile("/proc/sys/fs/lease-break-time")
	do(t, err)
	if err := os.WriteFile("/proc/sys/fs/lease-break-time", []byte("1"), 0); err != nil {
		t.Skip("this test cannot set the time of leases:", err)
	}
	defer func() { do(t, os.WriteFile("/proc/sys/fs/lease-break-time", restore, 0)) }()
	if text, err := read(open(t, walk.Options{Safe: true}, root), "/vault/secret", 0); err != nil {
		t.Errorf("%q, %v", text, err)
	}
}
