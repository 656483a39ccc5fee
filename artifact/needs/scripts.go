package needs

import (
	"errors"
	"io"
	"io/fs"
	"path"
	"slices"
	"sort"
	"strings"

	"github.com/corpus-agent/corpus-agent/artifact/walk"
)

// maxLine is the maximum number of bytes that are read of a script's first line; Linux reads no more (BINPRM_BUF_SIZE).
const maxLine = 256

// Scripts returns the interpreters in the first lines of a release's executable scripts: absolute paths, and names of
// programs that env searches on PATH, each with the name of one such script. Interpreters below one of the prefixes, or
// with a relative path, are part of the release and left out.
func Scripts(release fs.FS, prefixes ...string) (map[string]string, error) {
	found := map[string]string{}
	err := fs.WalkDir(release, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		info, err := d.Info()
		if err != nil || info.Mode()&0o111 == 0 {
			return err
		}
		line, err := firstLine(release, name)
		for _, program := range interpreters(line) {
			own := func(prefix string) bool { return strings.HasPrefix(program, strings.TrimSuffix(prefix, "/")+"/") }
			if _, known := found[program]; !known && !slices.ContainsFunc(prefixes, own) {
				found[program] = name
			}
		}
		return err
	})
	return found, err
}

// firstLine returns the beginning of a file.
func firstLine(release fs.FS, name string) (string, error) {
	f, err := release.Open(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	start := make([]byte, maxLine)
	n, err := f.Read(start)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	line, _, _ := strings.Cut(string(start[:n]), "\n")
	return line, err
}

// interpreters returns the programs that the first line of a script starts: an absolute path and, for env, the name of
// the program that it searches on PATH.
func interpreters(line string) []string {
	rest, script := strings.CutPrefix(line, "#!")
	words := strings.Fields(rest)
	if !script || len(words) == 0 || !path.IsAbs(words[0]) {
		return nil
	}
	programs := []string{path.Clean(words[0])}
	if path.Base(words[0]) != "env" {
		return programs
	}
	for _, word := range words[1:] {
		if !strings.HasPrefix(word, "-") && !strings.Contains(word, "=") {
			return append(programs, word)
		}
	}
	return programs
}

// searched are the directories in which env finds programs that the agent and systemd start.
const searched = "usr/local/sbin usr/local/bin usr/sbin usr/bin sbin bin"

// Absent returns a sentence for each interpreter that a host does not have, with a script that uses it. It returns an
// error if the host's files cannot be read.
func Absent(interpreters map[string]string, h Host) (absent []string, err error) {
	for program, script := range interpreters {
		dirs := strings.Fields(searched)
		if path.IsAbs(program) {
			dirs = []string{""}
		}
		there := false
		for _, dir := range dirs {
			_, err := fs.Stat(h.Root, strings.TrimPrefix(path.Join(dir, program), "/"))
			found, err := walk.Found(err)
			if err != nil {
				return nil, err
			}
			there = there || found
		}
		if !there {
			absent = append(absent, program+" ("+script+")")
		}
	}
	sort.Strings(absent)
	return absent, nil
}
