// Package archive implements archive.*: it makes, lists and extracts archives without another program, as the state
// archive.extracted does.
package archive

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/function"
	"github.com/corpus-agent/corpus-agent/state/host"
	archives "github.com/corpus-agent/corpus-agent/state/module/archive"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// archive makes archives, and lists and extracts them as archive.extracted does: no other program is run.
type archive struct{ *function.Facts }

// Functions returns the functions of archive that templates may call.
func Functions(f *function.Facts) function.Table {
	a := archive{f}
	return function.Table{
		"archive.is_encrypted": function.Of("name, clean=False, saltenv='base', source_hash=None, use_etag=False",
			a.encrypted),
		"archive.list": function.Of(
			"name, archive_format=None, options=None, strip_components=None, clean=False, verbose=False, saltenv='base', "+
				"source_hash=None, use_etag=False", a.list),
	}
}

// Acting returns the functions of archive that change the host.
func Acting(f *function.Facts) function.Table {
	a := archive{f}
	unzip := function.Of(
		"zip_file, dest, excludes=None, options=None, template=None, runas=None, trim_output=False, password=None, "+
			"extract_perms=True", a.unzip)
	return function.Table{
		"archive.zip":     function.Of("zip_file, sources, template=None, cwd=None, runas=None, zip64=False", a.zip),
		"archive.cmd_zip": function.Of("zip_file, sources, template=None, cwd=None, runas=None", a.cmdZip),
		"archive.tar": function.Of("options, tarfile, sources=None, dest=None, cwd=None, template=None, runas=None",
			a.tar),
		"archive.unzip":     unzip,
		"archive.cmd_unzip": unzip,
		"archive.gzip":      function.Of("sourcefile, template=None, runas=None, options=None", a.gzip),
		"archive.gunzip":    function.Of("gzipfile, template=None, runas=None, options=None", a.gunzip),
	}
}

// list returns the names in an archive of the host or of the state tree.
func (a archive) list(ctx context.Context, name, format string, _ any, strip int, _, verbose bool, env string, _,
	_ any) (any, error) {
	file, ok, err := a.Locate(name, env)
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, fmt.Errorf("the archive %s does not exist", name)
	}
	c, err := archives.List(ctx, a.HostOf(name), file, format, strip)
	if err != nil {
		return nil, err
	}
	if !verbose {
		return c.All(), nil
	}
	return value.NewMap("dirs", value.Strings(c.Dirs...), "files", value.Strings(c.Files...), "links",
		value.Strings(c.Links...),
		"top_level_dirs", value.Strings(archives.Top(c.Dirs)...), "top_level_files", value.Strings(archives.Top(c.Files)...),
		"top_level_links", value.Strings(archives.Top(c.Links)...)), nil
}

// encrypted reports whether a zip archive needs a password.
func (a archive) encrypted(name string, _ any, env string, _, _ any) (bool, error) {
	file, ok, err := a.Locate(name, env)
	if err != nil {
		return false, err
	}
	if !ok {
		return false, fmt.Errorf("the archive %s does not exist", name)
	}
	return archives.Encrypted(a.HostOf(name), file)
}

// tar makes (c), lists (t) or extracts (x) a tar archive with any compression.
func (a archive) tar(ctx context.Context, options, file string, sources any, dest, cwd string, template any,
	runas string) ([]string, error) {
	letters, words := "", ""
	for word := range strings.FieldsSeq(options) {
		if strings.HasPrefix(word, "--") {
			words += " " + word
		} else {
			letters += strings.TrimPrefix(word, "-")
		}
	}
	file, dest = under(cwd, file), under(cwd, dest)
	switch {
	case template != nil:
		return nil, errors.New("archive.tar renders no names here")
	case strings.Contains(letters, "t") || strings.Contains(words, "--list"):
		c, err := archives.List(ctx, a.Host, file, "tar", 0)
		return c.All(), err
	case strings.Contains(letters, "x") || strings.Contains(words, "--extract"):
		if dest == "" {
			dest = cwd
		}
		return a.extract(ctx, file, dest, "tar", strings.TrimSpace(strings.ReplaceAll(words, "--extract", "")), runas)
	}
	if !strings.Contains(letters, "c") && !strings.Contains(words, "--create") {
		return nil, diag.Call.Hint(fmt.Errorf("archive.tar makes, extracts and lists archives here, and options are %q",
			options), "run tar with cmd.run")
	}
	names, err := a.make(ctx, archives.Make{File: file, Compression: compression(letters, words, file), Dir: cwd}, sources,
		runas)
	if !strings.Contains(letters, "v") && !strings.Contains(words, "--verbose") && err == nil {
		names = []string{}
	}
	return names, err
}

// compression returns the compression that tar's options name, or for the option a, the one that the archive's name
// implies.
func compression(letters, words, file string) string {
	if strings.Contains(letters, "a") || strings.Contains(words, "--auto-compress") {
		for ending, kind := range map[string]string{"gz": "gz", "tgz": "gz", "bz2": "bz2", "tbz2": "bz2", "tbz": "bz2",
			"xz": "xz", "txz": "xz"} {
			if strings.HasSuffix(file, "."+ending) {
				return kind
			}
		}
	}
	for letter, kind := range map[string]string{"z": "gz", "j": "bz2", "J": "xz"} {
		if strings.Contains(letters, letter) {
			return kind
		}
	}
	for word, kind := range map[string]string{"--gzip": "gz", "--bzip2": "bz2", "--xz": "xz"} {
		if strings.Contains(words, word) {
			return kind
		}
	}
	return ""
}

// make makes an archive of the files that are named in a text or a list.
func (a archive) make(ctx context.Context, m archives.Make, sources any, runas string) ([]string, error) {
	if !path.IsAbs(m.File) {
		return nil, fmt.Errorf("the archive %q has to be an absolute path", m.File)
	}
	if runas != "" {
		return nil, diag.Call.Hint(errors.New("archives are made by the agent's own user"),
			"run tar or zip with cmd.run and runas")
	}
	if _, isText := sources.(string); isText {
		sources = value.Strings(strings.Split(sources.(string), ",")...)
	}
	names, err := function.Texts(sources)
	for _, name := range names {
		if name = strings.TrimSpace(name); name != "" {
			m.Sources = append(m.Sources, name)
		}
	}
	if err != nil {
		return nil, err
	}
	return m.Write(ctx, a.Host)
}

// zip makes a zip archive. Without a directory, names are relative to the root.
func (a archive) zip(ctx context.Context, file string, sources, template any, cwd, runas string, _ any) ([]string,
	error) {
	if template != nil {
		return nil, errors.New("archive.zip renders no names here")
	}
	return a.make(ctx, archives.Make{File: under(cwd, file), Zip: true, Dir: cwd}, sources, runas)
}

func (a archive) cmdZip(ctx context.Context, file string, sources, template any, cwd, runas string) ([]string, error) {
	return a.zip(ctx, file, sources, template, cwd, runas, nil)
}

func under(cwd, file string) string {
	if file == "" || path.IsAbs(file) {
		return file
	}
	return path.Join(cwd, file)
}

func (a archive) unzip(ctx context.Context, file, dest string, excludes, options, _ any, runas string, _, password any,
	_ any) ([]string, error) {
	if value.Truth(password) || value.Truth(options) {
		return nil, diag.Call.Hint(errors.New("archive.unzip knows neither options nor a password here"),
			"extract it with unzip by cmd.run")
	}
	left, err := function.Texts(excludes)
	if err != nil {
		return nil, err
	}
	words := ""
	for _, glob := range left {
		words += " --exclude=" + glob
	}
	return a.extract(ctx, file, dest, "zip", strings.TrimSpace(words), runas)
}

// extract unpacks an archive, replaces existing files, and returns the names in it.
func (a archive) extract(ctx context.Context, file, dest, format, options, runas string) ([]string, error) {
	if !path.IsAbs(file) || !path.IsAbs(dest) {
		return nil, fmt.Errorf("the archive %q and the destination %q have to be absolute paths", file, dest)
	}
	c, err := archives.List(ctx, a.Host, file, format, 0)
	if err != nil {
		return nil, err
	}
	arguments := value.NewMap("name", dest, "source", file, "archive_format", format, "enforce_toplevel", false,
		"overwrite", true)
	if options != "" {
		arguments.Set("options", options)
	}
	if runas != "" {
		arguments.Set("user", runas)
	}
	_, err = a.RunState(ctx, "archive.extracted", arguments)
	return c.All(), err
}

// maxZipped is the largest size of a file that gzip and gunzip accept, since they hold it in memory.
const maxZipped = 1 << 30

// gzip replaces a file by FILE.gz.
func (a archive) gzip(file string, template, runas, options any) ([]string, error) {
	return a.replace(file, file+".gz", template, runas, options, func(in io.Reader, out io.Writer) error {
		w := gzip.NewWriter(out)
		_, err := io.Copy(w, in)
		return errors.Join(err, w.Close())
	})
}

func (a archive) gunzip(file string, template, runas, options any) ([]string, error) {
	plain, ok := strings.CutSuffix(file, ".gz")
	if !ok {
		return nil, fmt.Errorf("the name of %s does not end with .gz", file)
	}
	return a.replace(file, plain, template, runas, options, func(in io.Reader, out io.Writer) error {
		r, err := gzip.NewReader(in)
		if err != nil {
			return err
		}
		n, err := io.Copy(out, io.LimitReader(r, maxZipped+1))
		if n > maxZipped {
			return errors.New("it is larger than 1 GiB")
		}
		return err
	})
}

// replace converts a file to another one, which gets its mode and owner, and removes the original.
func (a archive) replace(from, to string, template, runas, options any,
	make func(io.Reader, io.Writer) error) ([]string, error) {
	if !path.IsAbs(from) || value.Truth(template) || value.Truth(runas) || value.Truth(options) {
		return nil, errors.New("an absolute path without options is expected")
	}
	info, err := a.Host.Files.Lstat(from)
	if err != nil {
		return nil, err
	}
	if !info.IsRegular() || info.Size > maxZipped {
		return nil, host.Unsuitable(from, fmt.Errorf("%s is not a regular file of at most 1 GiB", from))
	}
	if _, err := a.Host.Files.Lstat(to); !function.Absent(err) {
		return nil, errors.Join(err, host.WithObstacle(to, fmt.Errorf("%s already exists", to)))
	}
	in, err := a.Host.Files.Open(from)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	var out bytes.Buffer
	if err := make(in, &out); err != nil {
		return nil, fmt.Errorf("reading %s: %w", from, err)
	}
	mode := info.Mode.Perm()
	if err := a.Host.Announce(to, from); err != nil {
		return nil, err
	}
	if err := a.Host.Files.Write(to, host.NewFile{Content: &out, Mode: &mode, UID: info.UID, GID: info.GID}); err != nil {
		return nil, err
	}
	return []string{}, a.Host.Files.Remove(from)
}
