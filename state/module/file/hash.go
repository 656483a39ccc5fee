package file

import (
	"bufio"
	"context"
	"crypto/md5"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"path"
	"slices"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// algorithm is a hash algorithm that source_hash can use.
type algorithm struct {
	name string
	make func() hash.Hash
}

// algorithms returns all algorithms. Their hashes differ in length, which identifies the algorithm of a hash.
func algorithms() []algorithm {
	return []algorithm{
		{"sha512", sha512.New}, {"sha384", sha512.New384}, {"sha256", sha256.New}, {"sha224", sha256.New224},
		{"sha1", sha1.New}, {"md5", md5.New},
	}
}

func algorithmBy(is func(a algorithm) bool) (algorithm, bool) {
	list := algorithms()
	if i := slices.IndexFunc(list, is); i >= 0 {
		return list[i], true
	}
	return algorithm{}, false
}

func algorithmOf(hexDigits string) (algorithm, bool) {
	return algorithmBy(func(a algorithm) bool { return isHex(hexDigits) && 2*a.make().Size() == len(hexDigits) })
}

func isHex(s string) bool {
	for i := range len(s) {
		if !isHexDigit(s[i]) {
			return false
		}
	}
	return s != ""
}

func isHexDigit(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F'
}

// sum is the hash that content should have; the zero value accepts any content.
type sum struct {
	algorithm
	hex string
}

func (s sum) known() bool { return s.hex != "" }

// of returns the hash of the content of r.
func (s sum) of(r io.Reader) (sum, error) {
	h := s.make()
	_, err := io.Copy(h, r)
	return sum{s.algorithm, hex.EncodeToString(h.Sum(nil))}, err
}

// mismatch returns the error for content with the wrong hash.
func mismatch(what string, want, got sum) error {
	err := diag.Download.Hint(fmt.Errorf("the %s of %s is %s, and source_hash says %s", want.name, what, got.hex,
		want.hex), "if the content is right, correct source_hash; if a hash file names several files, set source_hash_name")
	if p, on := onHost(what); on {
		return host.Unsuitable(p, err)
	}
	return err
}

// verified returns a reader that fails at the end of r if its content does not have the hash want.
func verified(r io.Reader, what string, want sum) io.Reader {
	if !want.known() {
		return r
	}
	return &verifier{from: r, hash: want.make(), what: what, want: want}
}

type verifier struct {
	from io.Reader
	hash hash.Hash
	what string
	want sum
}

// Size returns the size of the verified content.
func (v *verifier) Size() int64 { return host.SizeOf(v.from) }

// Sparse reports whether the verified content is sparse.
func (v *verifier) Sparse() bool { return host.Sparse(v.from) }

func (v *verifier) Read(p []byte) (int, error) {
	n, err := v.from.Read(p)
	v.hash.Write(p[:n])
	if err != io.EOF {
		return n, err
	}
	got := sum{v.want.algorithm, hex.EncodeToString(v.hash.Sum(nil))}
	if got.hex != v.want.hex {
		return n, mismatch(v.what, v.want, got)
	}
	return n, io.EOF
}

// sumOf parses source_hash: a hash, name=hash, or the place of a file of hashes. name is the path of the
// managed file and url its source; the lines of a file of hashes may contain either.
func (f *family) sumOf(ctx context.Context, text, hashName, name, url, env string) (sum, error) {
	if isURL(text) || path.IsAbs(text) {
		return f.sumFrom(ctx, text, hashName, name, url, env)
	}
	kind, digits, named := strings.Cut(text, "=")
	if !named {
		kind, digits = "", text
	}
	kind, digits = strings.TrimSpace(kind), strings.ToLower(strings.TrimSpace(digits))
	a, ok := algorithmOf(digits)
	if !ok {
		return sum{}, badHash(text)
	}
	if !named || kind == a.name {
		return sum{a, digits}, nil
	}
	if _, ok := algorithmBy(func(a algorithm) bool { return a.name == kind }); !ok {
		return sum{}, diag.Argument.Hint(fmt.Errorf("source_hash %s is of the unknown kind %s", text, kind),
			"write %s= or leave the kind out", a.name)
	}
	return sum{}, diag.Argument.Hint(fmt.Errorf("source_hash %s is as long as a %s, and not a %s", text, a.name, kind),
		"leave the kind out, or correct it")
}

func badHash(text string) error {
	return diag.Argument.Hint(fmt.Errorf("source_hash %s is not a hash", text),
		"write an md5, sha1, sha224, sha256, sha384 or sha512 in hex, kind=hash, or the URL or path of a file of hashes")
}

func (f *family) sumFrom(ctx context.Context, file, hashName, name, url, env string) (sum, error) {
	source, err := f.Sources.Open(ctx, file, env)
	if err != nil {
		return sum{}, fmt.Errorf("opening the file of hashes %s: %w", file, err)
	}
	defer source.Close()
	s, err := findSum(source, hashName, name, url)
	if err != nil {
		return sum{}, fmt.Errorf("reading the file of hashes %s: %w", file, err)
	}
	if !s.known() {
		return sum{}, badHash(file)
	}
	return s, nil
}

// The limits of a file of hashes. The lists of Debian's archive have 40 MiB.
const (
	maxHashLine = 1 << 20
	maxHashFile = 256 << 20
)

// findSum looks for the hash of a file in lines of the form of sha256sum or of Debian's control files: first by
// hashName, then by the path of the managed file, then by its source. If no line names any of these, it returns
// the first hash in the file.
func findSum(r io.Reader, hashName, name, url string) (sum, error) {
	var found [4]sum
	whole := &io.LimitedReader{R: r, N: maxHashFile + 1}
	lines := bufio.NewScanner(whole)
	lines.Buffer(nil, maxHashLine)
	for lines.Scan() {
		line := value.Strip(lines.Text())
		s, ok := sumIn(line)
		if !ok {
			continue
		}
		for rank, matches := range []bool{
			hashName != "" && (endsWith(line, hashName, "") || startsWith(line, hashName)),
			name != "" && (endsWith(line, path.Base(name), `\/*`) || startsWith(line, name)),
			url != "" && (endsWith(line, path.Base(url), `\/*`) || startsWith(line, url)),
			true,
		} {
			if matches && !found[rank].known() {
				found[rank] = s
			}
		}
	}
	if err := unfitForHashes(lines.Err(), whole); err != nil {
		return sum{}, err
	}
	for _, s := range found {
		if s.known() {
			return s, nil
		}
	}
	return sum{}, nil
}

// unfitForHashes returns the error for a file of hashes that is too large or could not be read to its end.
func unfitForHashes(err error, whole *io.LimitedReader) error {
	const hint = "see whether source_hash names the file of hashes, and not the file that they are of"
	switch {
	case errors.Is(err, bufio.ErrTooLong):
		return diag.Download.Hint(fmt.Errorf("a line of it is longer than %d KiB", maxHashLine>>10), hint)
	case err == nil && whole.N <= 0:
		return diag.Download.Hint(fmt.Errorf("it is larger than %d MiB", maxHashFile>>20), hint)
	}
	return err
}

// endsWith reports whether a line ends with a word that follows white space or one of the separators.
func endsWith(line, word, separators string) bool {
	before, ok := strings.CutSuffix(line, word)
	if !ok || before == "" {
		return false
	}
	last := rune(before[len(before)-1])
	return value.IsSpace(last) || strings.ContainsRune(separators, last)
}

func startsWith(line, word string) bool {
	rest, ok := strings.CutPrefix(line, word)
	return ok && rest != "" && value.IsSpace(rune(rest[0]))
}

// sumIn returns the hash in a line: its first word that has the form of one, if a known algorithm has that
// length.
func sumIn(line string) (sum, bool) {
	for word := range strings.FieldsFuncSeq(line, func(r rune) bool {
		return (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
	}) {
		if len(word) >= 32 && len(word) <= 128 && isHex(word) {
			a, ok := algorithmOf(word)
			return sum{a, strings.ToLower(word)}, ok
		}
	}
	return sum{}, false
}
