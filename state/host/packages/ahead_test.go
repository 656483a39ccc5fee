package packages

import (
	"context"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/host/hosttest"
)

// installing returns a transaction that installs packages by name.
func installing(names ...string) (t host.Transaction) {
	for _, name := range names {
		t.Packages = append(t.Packages, host.Wanted{Name: name})
	}
	return t
}

// aptOf returns a fake apt with the packages p1, p2 and so on up to the number most, each of which depends on a library
// of its own. The first download fails if its first package is the library with the number failing.
func aptOf(t *testing.T, most int, failing string) (*Packages, *hosttest.Scripted) {
	simulated, shown, offered := "", "", ""
	for i := range most {
		n := strconv.Itoa(i + 1)
		simulated += "Inst l" + n + " (1 Debian [all])\nInst p" + n + " (1:2 Debian [amd64])\n"
		shown += "Package: l" + n + "\nSize: 10\n\nPackage: p" + n + "\nDepends: l" + n + "\nSize: 10\nInstalled-Size: 1\n\n"
		offered += "p" + n + ":\n  Candidate: 1:2\n"
	}
	p, commands := aptWith(t, nil, map[string]host.Output{
		"apt-get --simulate": {Stdout: simulated}, "apt-cache -q show": {Stdout: shown},
		"apt-cache -q policy": {Stdout: offered},
		"rm":                  {}, "install": {}, "chown": {}, "mv": {}, "env --chdir=": {}, "apt-get -q -y": {},
		"apt-get -q install": {},
		"env --chdir=/var/cache/apt/ahead/0 apt-get -q -o Acquire::Retries=0 download -- l" + failing: {Code: 100,
			Stderr: "E: gone"},
	})
	if err := p.manager.(*apt).files.Mkdir("/var/cache", 0o755); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"/var/cache/apt", "/var/cache/apt/archives"} {
		if err := p.manager.(*apt).files.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return p, commands
}

// begun returns the commands that were run and begin with word, without the word.
func begun(commands *hosttest.Scripted, word string) (rests []string) {
	for _, line := range commands.Ran {
		if rest, ok := strings.CutPrefix(line, word); ok {
			rests = append(rests, strings.TrimSpace(rest))
		}
	}
	return rests
}

// TestPackagesOfTheWholeRunAreFetchedAhead fetches the packages of the seven transactions that follow the first one.
// apt runs twice for the queries, and three times for the downloads of one, two and four transactions.
func TestPackagesOfTheWholeRunAreFetchedAhead(t *testing.T) {
	p, commands := aptOf(t, 8, "-")
	later := []host.Transaction{}
	for _, name := range []string{"p2", "p3", "p4", "p5", "p6", "p7", "p8"} {
		later = append(later, installing(name))
	}
	ctx, end := context.WithCancel(t.Context())
	fetch := p.FetchAhead(ctx, installing("p1"), func() []host.Transaction { return later })
	if fetch == nil {
		t.Fatal("nothing is fetched")
	}
	if again := p.FetchAhead(ctx, installing("p2"), func() []host.Transaction { return later[1:] }); again != nil {
		t.Error("packages are fetched twice")
	}
	if len(commands.Ran) != 2 {
		t.Errorf("apt ran %d times:\n%s", len(commands.Ran), strings.Join(commands.Ran, "\n"))
	}
	end()
	fetch(ctx)
	want := []string{
		"0 apt-get -q -o Acquire::Retries=0 download -- l2=1 p2=1:2",
		"1 apt-get -q -o Acquire::Retries=0 download -- l3=1 p3=1:2 l4=1 p4=1:2",
		"2 apt-get -q -o Acquire::Retries=0 download -- l5=1 p5=1:2 l6=1 p6=1:2 l7=1 p7=1:2 l8=1 p8=1:2",
	}
	if got := begun(commands, "env --chdir=/var/cache/apt/ahead/"); !slices.Equal(got, want) {
		t.Errorf("downloads:\n%s", strings.Join(got, "\n"))
	}
	if last := commands.Ran[len(commands.Ran)-1]; last != "rm -rf --one-file-system -- /var/cache/apt/ahead" {
		t.Errorf("at the end of the run: %s", last)
	}
	if len(commands.Writes) != 0 {
		t.Errorf("a download counts as a change of the host: %q", commands.Writes)
	}
}

// TestADownloadAheadThatFails checks that no transaction fails because a download ahead of it failed, and that nothing
// more is downloaded ahead.
func TestADownloadAheadThatFails(t *testing.T) {
	p, commands := aptOf(t, 3, "2")
	later := []host.Transaction{installing("p2"), installing("p3")}
	ctx, end := context.WithCancel(t.Context())
	fetch := p.FetchAhead(ctx, installing("p1"), func() []host.Transaction { return later })
	end()
	fetch(ctx)
	if got := begun(commands, "env --chdir="); len(got) != 1 {
		t.Errorf("downloads after the failure: %q", got)
	}
	for _, own := range later {
		if err := p.Do(t.Context(), own); err != nil {
			t.Error(err)
		}
	}
	if got := begun(commands, "mv"); len(got) != 0 {
		t.Errorf("adopted: %q", got)
	}
}

// TestATransactionTakesWhatWasFetched checks that a transaction uses only files of its packages and their versions, and
// neither directories nor links.
func TestATransactionTakesWhatWasFetched(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only files of root or of apt are used, which this user cannot create")
	}
	p, commands := aptOf(t, 2, "-")
	ctx, end := context.WithCancel(t.Context())
	fetch := p.FetchAhead(ctx, installing("p1"), func() []host.Transaction { return []host.Transaction{installing("p2")} })
	files := p.manager.(*apt).files
	for _, dir := range []string{aptAhead, aptAhead + "/0", aptAhead + "/0/p2_1%3a2_arm64.deb"} {
		if err := files.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"p2_1%3a2_amd64.deb", "p2_3_amd64.deb", "p3_1%3a2_amd64.deb", "p2_1%3a2_amd64"} {
		err := files.Write(aptAhead+"/0/"+name, host.NewFile{Content: strings.NewReader(name), UID: -1, GID: -1})
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := files.Symlink("/etc/shadow", aptAhead+"/0/l2_1_all.deb"); err != nil {
		t.Fatal(err)
	}
	end()
	fetch(ctx)
	if err := p.Do(t.Context(), installing("p2")); err != nil {
		t.Fatal(err)
	}
	want := []string{"-f -t /var/cache/apt/archives -- /var/cache/apt/ahead/0/p2_1%3a2_amd64.deb"}
	if got := begun(commands, "mv"); !slices.Equal(got, want) {
		t.Errorf("adopted: %q", got)
	}
}

// TestLaterDownloadsLeaveOutFetchedPackages checks that a group leaves out packages that a transaction has fetched
// itself.
func TestLaterDownloadsLeaveOutFetchedPackages(t *testing.T) {
	p, commands := aptOf(t, 4, "-")
	ctx, end := context.WithCancel(t.Context())
	later := []host.Transaction{installing("p2"), installing("p3"), installing("p4")}
	fetch := p.FetchAhead(ctx, installing("p1"), func() []host.Transaction { return later })
	a := p.ahead
	p.adopt(ctx, []host.PackageChange{{Name: "l3", New: "1"}, {Name: "p3", New: "1:2"}})
	end()
	fetch(ctx)
	if got := begun(commands, "env --chdir="); len(a.groups) != 2 || len(got) != 2 || strings.Contains(got[1], "p3") ||
		!strings.Contains(got[1], "p4") {
		t.Errorf("downloads: %q", got)
	}
}

// TestNothingIsFetchedAheadWithoutSpace checks that packages that are larger than the disk are not fetched ahead.
func TestNothingIsFetchedAheadWithoutSpace(t *testing.T) {
	p, commands := aptOf(t, 2, "-")
	commands.Answers["apt-cache -q show"] = host.Output{
		Stdout: commands.Answers["apt-cache -q show"].Stdout + "Package: p2\nInstalled-Size: 9000000000000\n"}
	if p.FetchAhead(t.Context(), installing("p1"), func() []host.Transaction {
		return []host.Transaction{installing("p2")}
	}) != nil {
		t.Error("more is fetched than the disk has room for")
	}
}
