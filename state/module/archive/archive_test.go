package archive_test

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/corpus-agent/corpus-agent/state/host/hosttest"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/module/archive"
	"github.com/corpus-agent/corpus-agent/state/statetest"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// item is an entry of an archive. A name with a trailing slash is a directory.
type item struct {
	name, text, link string
	hard             bool
	kind             byte
	mode             int64
}

func tarOf(items ...item) []byte {
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, i := range items {
		h := &tar.Header{Name: i.name, Mode: 0o644, Size: int64(len(i.text)), Typeflag: tar.TypeReg,
			ModTime: time.Unix(1700000000, 0), Uname: "games"}
		switch {
		case i.kind != 0:
			h.Typeflag = i.kind
		case strings.HasSuffix(i.name, "/"):
			h.Typeflag, h.Mode = tar.TypeDir, 0o755
		case i.hard:
			h.Typeflag, h.Linkname = tar.TypeLink, i.link
		case i.link != "":
			h.Typeflag, h.Linkname = tar.TypeSymlink, i.link
		}
		if i.mode != 0 {
			h.Mode = i.mode
		}
		_ = w.WriteHeader(h)
		_, _ = io.WriteString(w, i.text)
	}
	_ = w.Close()
	return out.Bytes()
}

func zipOf(items ...item) []byte {
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	for _, i := range items {
		h := &zip.FileHeader{Name: i.name, Modified: time.Unix(1700000000, 0)}
		mode := fs.FileMode(0o600)
		if i.mode != 0 {
			mode = fs.FileMode(i.mode)
		}
		if strings.HasSuffix(i.name, "/") {
			mode = fs.ModeDir | 0o750
		}
		if i.link != "" {
			mode, i.text = fs.ModeSymlink|0o777, i.link
		}
		h.SetMode(mode)
		f, _ := w.CreateHeader(h)
		_, _ = io.WriteString(f, i.text)
	}
	_ = w.Close()
	return out.Bytes()
}

func zipped(data []byte) []byte {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	_, _ = w.Write(data)
	_ = w.Close()
	return out.Bytes()
}

func sum(data []byte) string {
	s := sha256.Sum256(data)
	return hex.EncodeToString(s[:])
}

// app returns the entries that most archives of the tests have.
func app() []item {
	return []item{{name: "app-1/"}, {name: "app-1/bin/run", text: "#!", mode: 0o755},
		{name: "app-1/readme", text: "hello"}, {name: "app-1/latest", link: "readme"}}
}

// dotted returns an archive like that of `tar -c .`.
func dotted() []byte {
	return tarOf(item{name: "./"}, item{name: "./readme", text: "hello"}, item{name: "./bin/"},
		item{name: "./bin/run", text: "#!", mode: 0o755})
}

// served returns archives by URL: those with web:// are fetched, others are files of the host.
type served struct{ web map[string][]byte }

func (s served) Archive(_ context.Context, w archive.Wanted) (archive.Source, error) {
	url, _ := w.Source.(string)
	src := archive.Source{Shown: url, Path: url, Notes: "/var/cache/corpus/notes", Sum: w.Hash}
	src.Verified = func(r io.Reader) io.Reader {
		data, err := io.ReadAll(r)
		if err == nil && w.Hash != "" && sum(data) != w.Hash {
			err = errors.New("the hash differs")
		}
		return io.MultiReader(bytes.NewReader(data), failing{err})
	}
	if rest, ok := strings.CutPrefix(url, "web://"); ok {
		src.Path, src.Cache = "", "/var/cache/corpus/files/"+rest
		src.Open = func(context.Context) (io.ReadCloser, error) {
			data, ok := s.web[rest]
			if !ok {
				return nil, fs.ErrNotExist
			}
			return io.NopCloser(src.Verified(bytes.NewReader(data))), nil
		}
	}
	return src, nil
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) {
	if f.err == nil {
		return 0, io.EOF
	}
	return 0, f.err
}

func listed(names ...string) *value.List { return value.Strings(names...) }

func appFiles() *value.List {
	return listed("app-1", "app-1/bin/run", "app-1/readme", "app-1/latest")
}

func text(s string) *string { return &s }

func appTree(user string) statetest.Tree {
	return statetest.Tree{
		"/opt/app-1":         statetest.Dir().With("0755", user, ""),
		"/opt/app-1/bin/run": statetest.File("#!").With("0755", user, ""),
		"/opt/app-1/readme":  {Kind: "file", Content: text("hello"), User: user, Modified: time.Unix(1700000000, 0)},
		"/opt/app-1/latest":  statetest.Link("readme"),
	}
}

// at returns a case with the archive data at several paths.
func at(name string, data []byte, items ...any) statetest.Case {
	return statetest.Case{Name: name, Function: "extracted",
		Arguments: value.NewMap(append([]any{"name", "/opt/"}, items...)...),
		Tree: statetest.Tree{"/srv/a.tar": statetest.File(string(data)), "/srv/a.zip": statetest.File(string(data)),
			"/srv/a": statetest.File(string(data))}}
}

func with(c statetest.Case, change func(c *statetest.Case)) statetest.Case {
	change(&c)
	return c
}

// fails turns a case into one that fails without writing anything.
func fails(c statetest.Case, comment string) statetest.Case {
	c.Dry = &statetest.Want{Result: false, Comment: comment}
	c.First = c.Dry
	c.After = statetest.Tree{"/opt": {Absent: true}}
	return c
}

// cases returns cases that extract an archive of the host to a directory that does not exist.
func (s served) cases() []statetest.Case {
	good := tarOf(app()...)
	changes := value.NewMap("directories_created", listed("/opt/"), "extracted_files", appFiles())
	done := &statetest.Want{Result: true, Changes: changes, Comment: "extracted "}
	nothing := &statetest.Want{Result: true, Changes: value.NewMap()}
	return []statetest.Case{
		with(at("a tar archive", good, "source", "/srv/a.tar"), func(c *statetest.Case) {
			c.Dry = &statetest.Want{Result: nil, Changes: value.NewMap(),
				Comment: "would extract /srv/a.tar to /opt/; without preserve: True it leaves out the owner of app-1"}
			c.First, c.After = done, appTree("root")
		}),
		with(at("with its owners", good, "source", "/srv/a.tar", "preserve", true), func(c *statetest.Case) {
			c.Dry = &statetest.Want{Result: nil, Changes: value.NewMap(), Comment: "would extract /srv/a.tar to /opt/"}
			c.First, c.After = done, appTree("games")
		}),
		with(at("with its owners by an option of tar", good, "source", "/srv/a.tar", "options", "-xpf"),
			func(c *statetest.Case) { c.First, c.After = done, appTree("games") }),
		with(at("a compressed archive", zipped(good), "source", "/srv/a.tar", "source_hash", sum(zipped(good))),
			func(c *statetest.Case) {
				c.First, c.After = done, appTree("root")
			}),
		with(at("an explicit format", good, "source", "/srv/a", "archive_format", "tar"), func(c *statetest.Case) {
			c.First = done
		}),
		fails(at("an unknown format", good, "source", "/srv/a"), "does not show the format"),
		fails(at("a format that does not exist", good, "source", "/srv/a", "archive_format", "rar"), "archive_format is rar"),
		with(at("a zip archive", zipOf(app()...), "source", "/srv/a.zip"), func(c *statetest.Case) {
			c.First = &statetest.Want{Result: true, Changes: value.NewMap("directories_created", listed("/opt/"),
				"extracted_files", listed("app-1/", "app-1/bin/run", "app-1/readme", "app-1/latest"))}
			c.After = statetest.Tree{"/opt/app-1": statetest.Dir().With("0750", "", ""),
				"/opt/app-1/bin/run": statetest.File("#!").With("0755", "", ""),
				"/opt/app-1/latest":  statetest.Link("readme")}
		}),
		with(at("a zip archive without its modes", zipOf(app()...), "source", "/srv/a.zip", "extract_perms", false),
			func(c *statetest.Case) {
				c.After = statetest.Tree{"/opt/app-1/bin/run": statetest.File("#!").With("0644", "", "")}
			}),
		with(at("fewer directories", good, "source", "/srv/a.tar", "options", "--strip-components=1 -z",
			"enforce_toplevel", false), func(c *statetest.Case) {
			c.After = statetest.Tree{"/opt/readme": statetest.File("hello"), "/opt/bin/run": statetest.File("#!"),
				"/opt/app-1": {Absent: true}}
		}),
		with(at("names that begin with a dot", dotted(), "source", "/srv/a.tar", "user", "games", "group", "users"),
			func(c *statetest.Case) {
				c.First = &statetest.Want{Result: true}
				c.After = statetest.Tree{"/opt": statetest.Dir().With("", "games", "users"),
					"/opt/readme": statetest.File("hello").With("", "games", "users"), "/opt/bin/run": statetest.File("#!")}
			}),
		with(at("the dot counts for --strip-components", dotted(), "source", "/srv/a.tar", "options", "--strip-components=1"),
			func(c *statetest.Case) {
				c.First = &statetest.Want{Result: true}
				c.After = statetest.Tree{"/opt/readme": statetest.File("hello"), "/opt/bin/run": statetest.File("#!")}
			}),
		with(at("fewer files", good, "source", "/srv/a.tar", "options", "--exclude bin"), func(c *statetest.Case) {
			c.After = statetest.Tree{"/opt/app-1/readme": statetest.File("hello"), "/opt/app-1/bin": {Absent: true}}
		}),
		fails(at("an option that does not exist", good, "source", "/srv/a.tar", "options", "--transform=s/a/b/"),
			"the option --transform=s/a/b/ is not supported"),
		with(at("an owner", good, "source", "/srv/a.tar", "user", "games", "group", "users", "trim_output", 2),
			func(c *statetest.Case) {
				c.First = &statetest.Want{Result: true,
					Changes: value.NewMap("updated ownership", true, "directories_created", listed("/opt/"),
						"extracted_files", listed("app-1", "app-1/bin/run"))}
				c.After = statetest.Tree{"/opt": statetest.Dir().With("", "games", "root"),
					"/opt/app-1/bin":    statetest.Dir().With("", "games", "users"),
					"/opt/app-1/readme": statetest.File("hello").With("", "games", "users")}
			}),
		with(at("another owner for existing files", good, "source", "/srv/a.tar", "user", "games"), func(c *statetest.Case) {
			c.Tree = appTree("root")
			c.Tree["/srv/a.tar"] = statetest.File(string(good))
			c.First = &statetest.Want{Result: true, Changes: value.NewMap("updated ownership", true)}
		}),
		with(at("an owner who does not exist", good, "source", "/srv/a.tar", "user", "zoe"), func(c *statetest.Case) {
			c.Dry = &statetest.Want{Result: nil, Comment: "user zoe does not exist"}
			c.First = &statetest.Want{Result: false, Comment: "user zoe does not exist", Hint: "require"}
			c.After = statetest.Tree{"/opt": {Absent: true}}
		}),
		with(at("nothing to do if if_missing exists", good, "source", "/srv/a.tar", "if_missing", "/srv/a"),
			func(c *statetest.Case) { c.First = nothing }),
	}
}

// replacing returns cases in which the directory already exists.
func (s served) replacing() []statetest.Case {
	good := tarOf(app()...)
	return []statetest.Case{
		with(at("a file that is missing", good, "source", "/srv/a.tar"), func(c *statetest.Case) {
			c.Tree["/opt/app-1/readme"] = statetest.File("mine")
			c.First = &statetest.Want{Result: true, Changes: value.NewMap("extracted_files", appFiles())}
			c.After = appTree("")
		}),
		with(at("always, with overwrite", good, "source", "/srv/a.tar", "overwrite", true),
			func(c *statetest.Case) { c.Always = true }),
		with(at("a directory in the place of a file", good, "source", "/srv/a.tar"), func(c *statetest.Case) {
			c.Tree["/opt/app-1/readme/mine"] = statetest.File("")
			c.Dry = &statetest.Want{Result: false, Comment: "something else than the archive has: app-1/readme",
				Hint: "force: True"}
		}),
		with(at("a directory in the place of a file, by force", good, "source", "/srv/a.tar", "force", true),
			func(c *statetest.Case) {
				c.Tree["/opt/app-1/readme/mine"] = statetest.File("")
				c.First = &statetest.Want{Result: true,
					Changes: value.NewMap("removed", listed("/opt/app-1/readme"), "extracted_files", appFiles())}
			}),
		with(at("a directory that is a link", good, "source", "/srv/a.tar", "force", true), func(c *statetest.Case) {
			c.Tree["/opt/app-1"], c.Tree["/etc/bin/x"] = statetest.Link("/etc"), statetest.File("")
			c.After = statetest.Tree{"/opt/app-1": statetest.Dir(), "/etc/bin/run": {Absent: true}}
		}),
		with(at("clean", good, "source", "/srv/a.tar", "clean", true), func(c *statetest.Case) {
			c.Tree["/opt/app-1/old"], c.Tree["/opt/other"] = statetest.File(""), statetest.File("")
			c.First = &statetest.Want{Result: true,
				Changes: value.NewMap("removed", listed("/opt/app-1"), "extracted_files", appFiles())}
			c.After = statetest.Tree{"/opt/app-1/old": {Absent: true}, "/opt/other": statetest.File("")}
		}),
		with(at("clean_parent", good, "source", "/srv/a.tar", "clean_parent", true), func(c *statetest.Case) {
			c.Tree["/opt/other"] = statetest.File("")
			c.After = statetest.Tree{"/opt/other": {Absent: true}, "/opt/app-1/readme": statetest.File("hello")}
		}),
		fails(at("clean and clean_parent", good, "source", "/srv/a.tar", "clean", true, "clean_parent", true),
			"both clean and clean_parent"),
		fails(at("a hash that differs", good, "source", "/srv/a.tar", "source_hash", sum(nil)), "the hash differs"),
		fails(at("no archive", []byte("hello"), "source", "/srv/a.tar"), "is not a complete tar archive"),
		fails(at("no zip archive", []byte("hello"), "source", "/srv/a.zip"), "is not a complete zip archive"),
		fails(at("no file", good, "source", "/srv/gone.tar"), "/srv/gone.tar does not exist"),
		fails(at("a password", good, "source", "/srv/a.zip", "password", "s3cretive"), "encrypted archives"),
		fails(at("many files at the top", tarOf(item{name: "a"}, item{name: "b/c"}), "source", "/srv/a.tar"),
			"more than one directory at its top"),
		with(at("many files at the top, without enforce_toplevel", tarOf(item{name: "a"}, item{name: "b/c"}),
			"source", "/srv/a.tar", "enforce_toplevel", false),
			func(c *statetest.Case) {
				c.After = statetest.Tree{"/opt/a": statetest.File(""), "/opt/b/c": statetest.File("")}
			}),
		with(at("hard links", tarOf(item{name: "d/a", text: "x"}, item{name: "d/b", link: "d/a", hard: true}),
			"source", "/srv/a.tar"),
			func(c *statetest.Case) { c.After = statetest.Tree{"/opt/d/b": statetest.File("x")} }),
	}
}

// fetching returns cases with a remote archive or a recorded hash.
func (s served) fetching() []statetest.Case {
	good := tarOf(app()...)
	done := &statetest.Want{Result: true, Changes: value.NewMap("directories_created", listed("/opt/"),
		"extracted_files", appFiles()), Comment: "extracted "}
	nothing := &statetest.Want{Result: true, Changes: value.NewMap()}
	return []statetest.Case{
		with(at("from a server", nil, "source", "web://app.tar.gz", "source_hash", sum(zipped(good))),
			func(c *statetest.Case) {
				c.Dry = &statetest.Want{Result: nil, Changes: value.NewMap(), Comment: "would fetch web://app.tar.gz"}
				c.First, c.Second, c.After = done, nothing, appTree("")
			}),
		with(at("from a server, not kept", nil, "source", "web://app.tar.gz", "keep_source", false),
			func(c *statetest.Case) {
				c.First, c.Second, c.After = done, nothing, statetest.Tree{"/var/cache/corpus/files/app.tar.gz": {Absent: true}}
			}),
		with(at("from a server, with another hash", nil, "source", "web://app.tar.gz", "source_hash", sum(nil)),
			func(c *statetest.Case) {
				c.First = &statetest.Want{Result: false, Comment: "the hash differs"}
				c.After = statetest.Tree{"/opt": {Absent: true}, "/var/cache/corpus/files/app.tar.gz": {Absent: true}}
			}),
		with(at("from a server, missing", nil, "source", "web://gone.tar"), func(c *statetest.Case) {
			c.First = &statetest.Want{Result: false, Comment: "file does not exist"}
		}),
		with(at("from a server, an old copy", nil, "source", "web://app.tar.gz", "source_hash", sum(zipped(good))),
			func(c *statetest.Case) {
				c.Tree["/var/cache/corpus/files/app.tar.gz"] = statetest.File("old")
				c.First, c.Second = done, nothing
			}),
		with(at("a new hash", good, "source", "/srv/a.tar", "source_hash", sum(good), "source_hash_update", true),
			func(c *statetest.Case) {
				c.Tree = appTree("root")
				c.Tree["/srv/a.tar"] = statetest.File(string(good))
				c.Tree["/var/cache/corpus/notes/extracted/opt.a.tar.hash"] = statetest.File("old")
				c.First, c.Second = &statetest.Want{Result: true, Changes: value.NewMap("extracted_files", appFiles())}, nothing
			}),
		with(at("extracted before", nil, "source", "web://gone.tar", "source_hash", "0123", "skip_files_list_verify", true),
			func(c *statetest.Case) {
				c.Tree["/var/cache/corpus/notes/extracted/opt.gone.tar.hash"] = statetest.File("0123\n")
				c.First = &statetest.Want{Result: true, Changes: value.NewMap(), Comment: "was extracted before"}
			}),
	}
}

func TestConformance(t *testing.T) {
	s := served{map[string][]byte{"app.tar.gz": zipped(tarOf(app()...))}}
	cases := slices.Concat(s.cases(), s.replacing(), s.fetching())
	for name, items := range map[string][]item{
		"a name outside of the target":  {{name: "a/../../etc/x"}},
		"an absolute name":              {{name: "/etc/x"}},
		"a file below a link":           {{name: "d/l", link: "/etc"}, {name: "d/l/x"}},
		"a file below a file":           {{name: "d/l"}, {name: "d/l/x"}},
		"a hard link to a file outside": {{name: "d/l", link: "/etc/passwd", hard: true}},
		"a hard link to a link": {{name: "d/m", link: "/etc/passwd"},
			{name: "d/l", link: "d/m", hard: true}},
		"a directory that is replaced by a link": {{name: "t/f", text: "evil"}, {name: "t/a/"}, {name: "t/a", link: "t/f",
			hard: true}, {name: "t/a", link: "/etc"}, {name: "t/a/"}, {name: "t/a/evil", text: "evil"}},
		"a directory that is replaced by a file": {{name: "t/a/b"}, {name: "t/a"}},
		"a hard link to a file that was replaced by a link": {{name: "t/f", text: "x"}, {name: "t/f", link: "/etc/passwd"},
			{name: "t/g", link: "t/f", hard: true}},
		"a long part of a name":       {{name: "t/" + strings.Repeat("a", 256)}},
		"a long name":                 {{name: strings.Repeat("abcdefg/", 501) + "x"}},
		"a deep name":                 {{name: strings.Repeat("d/", 64) + "x"}},
		"a long link":                 {{name: "t/a", link: strings.Repeat("a", 4001)}},
		"a device":                    {{name: "d/dev", kind: tar.TypeChar}},
		"a pipe":                      {{name: "d/pipe", kind: tar.TypeFifo}},
		"a valid and an invalid name": {{name: "d/a"}, {name: "d/../../x"}},
	} {
		cases = append(cases, fails(at(name, tarOf(items...), "source", "/srv/a.tar"), "the archive is refused"))
	}
	cases = append(cases, fails(at("a zip with a name outside of the target", zipOf(item{name: "../x"}),
		"source", "/srv/a.zip"), "the archive is refused"))
	statetest.Run(t, statetest.Suite{
		State:     "archive",
		Functions: func(*statetest.Host) module.Table { return archive.Functions(s) },
		Cases:     cases,
	})
}

// TestDryRunChecksThatTheArchiveExists checks that a dry run fails, like the run, if the server does not have the
// archive.
func TestDryRunChecksThatTheArchiveExists(t *testing.T) {
	table := archive.Functions(served{web: map[string][]byte{"a.tar": dotted()}})
	for url, want := range map[string]string{"web://a.tar": "",
		"web://none.tar": "fetching the archive web://none.tar: file does not exist"} {
		h := statetest.NewHost(t)
		resource := hosttest.Resource(t, table,
			"extracted", value.NewMap("name", "/opt/", "source", url, "enforce_toplevel", false))
		d, err := resource.(module.Rehearser).Rehearse(context.Background(), h.Host)
		if want == "" && (err != nil || !d.Unknown) || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %+v, %v", url, d, err)
		}
		if d, err = resource.Check(context.Background(), h.Host); err == nil {
			_, err = resource.Apply(context.Background(), h.Host, d)
		}
		if (err == nil) != (want == "") {
			t.Errorf("%s: the run gives %v", url, err)
		}
	}
}
