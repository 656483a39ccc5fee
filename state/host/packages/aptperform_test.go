package packages

import (
	"fmt"
	"strings"
	"syscall"
	"testing"

	"github.com/corpus-agent/corpus-agent/state/host"
)

// TestDownloadsOfAFullDiskAreRemoved checks that a transaction for which there is no room leaves nothing in apt's
// cache, and that other failures leave what the next try needs.
func TestDownloadsOfAFullDiskAreRemoved(t *testing.T) {
	p, _ := aptWith(t, nil, nil)
	a := p.manager.(*apt)
	put := func(name string) {
		t.Helper()
		file := host.NewFile{Content: strings.NewReader("x"), UID: -1, GID: -1}
		if err := a.files.Write(aptArchives+"/"+name, file); err != nil {
			t.Fatal(err)
		}
	}
	for _, dir := range []string{"/var", "/var/cache", "/var/cache/apt", aptArchives, aptArchives + "/partial"} {
		_ = a.files.Mkdir(dir, 0o755) // the first may exist
	}
	put("lock")
	put("old_1_all.deb")
	before := a.downloads()
	put("new_1_all.deb")
	put("partial/more_1_all.deb")
	_ = a.freed(before, fmt.Errorf("a failing script"))
	if got := len(a.downloads()); got != 3 {
		t.Errorf("%d downloads are left after another failure", got)
	}
	_ = a.freed(before, &ofHost{fmt.Errorf("no room"), syscall.ENOSPC})
	if got := a.downloads(); len(got) != 1 || !got[aptArchives+"/old_1_all.deb"] {
		t.Errorf("left are %v", got)
	}
}
