package host_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/corpus-agent/corpus-agent/state/host"
)

// TestOwnLinksAreOfTheRelease has links in a directory of a user that lead to a directory of root. The release is at
// fault for a refused one if the run made or declared it so, and no user can change what is at its target.
func TestOwnLinksAreOfTheRelease(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("files of several users require root")
	}
	root := t.TempDir()
	at := func(p string) string { return filepath.Join(root, p) }
	h, err := host.Open(host.Options{Root: root}, host.Caches{})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Chmod(root, 0o755), os.MkdirAll(at("etc/dir"), 0o755), os.MkdirAll(at("etc/other"), 0o755),
		os.MkdirAll(at("home/ann/own"), 0o755), os.Lchown(at("home/ann"), 64001, 64001)); err != nil {
		t.Fatal(err)
	}
	link := func(target, name string) { err = errors.Join(err, h.Files.Symlink(target, "/home/ann/"+name)) }
	users := func(target, name string) {
		err = errors.Join(err, os.RemoveAll(at("home/ann/"+name)), os.Symlink(target, at("home/ann/"+name)),
			os.Lchown(at("home/ann/"+name), 64001, 64001))
	}
	link("/etc/dir", "made")
	link("../../etc/dir", "relative")
	link("/etc/dir", "exchanged")
	link("/etc/dir", "same again")
	link("/home/ann/own", "below")
	link("/home/ann/hard", "to a hard link")
	err = errors.Join(err, os.WriteFile(at("etc/file"), nil, 0o644), os.Link(at("etc/file"), at("home/ann/hard")))
	users("/etc/other", "exchanged")
	users("/etc/dir", "same again")
	users("/etc/dir", "a user's")
	users("/etc/dir", "own")
	users("/etc/dir", "declared")
	users("/etc/other", "declared otherwise")
	h.NoteDeclared("/home/ann/declared", os.ModeSymlink, false, "/etc/dir")
	h.NoteDeclared("/home/ann/declared otherwise", os.ModeSymlink, false, "/etc/dir")
	if err != nil {
		t.Fatal(err)
	}
	for name, own := range map[string]bool{"made": true, "relative": true, "exchanged": false, "same again": true,
		"below": false, "to a hard link": false, "a user's": false, "declared": true, "declared otherwise": false} {
		refused := h.Refuses("/home/ann/" + name + "/file")
		if refused == nil {
			refused = h.Refuses("/home/ann/" + name)
		}
		if !host.ByUser(refused) {
			t.Errorf("%s: the refusal is %v", name, refused)
		}
		if of := h.OfOwnLink(refused); (of != nil) != own || own && host.ByUser(of) {
			t.Errorf("%s: a link of the run: %v, want %v", name, of != nil, own)
		}
	}
}
