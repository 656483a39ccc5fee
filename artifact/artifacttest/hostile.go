package artifacttest

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"maps"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/artifact"
)

// Hostile is an archive that agents must refuse.
type Hostile struct {
	Name   string
	Format artifact.Format
	Data   []byte
}

// Block is a header of a tar archive, byte by byte, which need not be valid.
type Block struct {
	Name, Link, Prefix string
	Type               byte
	Mode, Size         string // as written in the header; "" for the usual value
	Magic              string // empty for ustar
	Content            string
	BadSum             bool
}

// bytes returns the header and the content, padded.
func (b Block) bytes() []byte {
	h := make([]byte, 512)
	put := func(at, length int, text string) { copy(h[at:at+length], text) }
	or := func(text, usual string) string {
		if text == "" {
			return usual
		}
		return text
	}
	put(0, 100, b.Name)
	put(100, 8, or(b.Mode, "0000644\x00"))
	put(108, 8, "0000000\x00")
	put(116, 8, "0000000\x00")
	put(124, 12, or(b.Size, fmt.Sprintf("%011o\x00", len(b.Content))))
	put(136, 12, "00000000001\x00")
	put(148, 8, "        ")
	h[156] = b.Type
	put(157, 100, b.Link)
	put(257, 8, or(b.Magic, "ustar\x0000"))
	put(345, 155, b.Prefix)
	sum := 0
	for _, c := range h {
		sum += int(c)
	}
	if b.BadSum {
		sum++
	}
	put(148, 8, fmt.Sprintf("%06o\x00 ", sum))
	content := make([]byte, (len(b.Content)+511)/512*512)
	copy(content, b.Content)
	return append(h, content...)
}

// Raw joins headers into an archive.
func Raw(blocks ...Block) []byte {
	var out []byte
	for _, b := range blocks {
		out = append(out, b.bytes()...)
	}
	return append(out, make([]byte, 1024)...)
}

// pax returns an extended header with the given records.
func pax(records string) Block {
	return Block{Name: "PaxHeaders/x", Type: 'x', Content: records}
}

// record formats a record of an extended header.
func record(key, value string) string {
	size := len(key) + len(value) + 3
	for n := size + 1; ; n++ {
		if len(fmt.Sprint(n))+size == n {
			return fmt.Sprintf("%d %s=%s\n", n, key, value)
		}
	}
}

func file(name string) Block { return Block{Name: name, Type: tar.TypeReg, Content: "x"} }
func link(name, to string) Block {
	return Block{Name: name, Type: tar.TypeSymlink, Link: to}
}

// hostileNames returns tar archives with names and links that lead to forbidden places.
func hostileNames() map[string][]Block {
	return map[string][]Block{
		"absolute name":               {file("/etc/passwd")},
		"absolute name by its prefix": {{Name: "passwd", Prefix: "/etc", Type: tar.TypeReg, Content: "x"}},
		"absolute name by its record": {pax(record("path", "/etc/passwd")), file("harmless")},
		"absolute name by a GNU long name": {{Name: "././@LongLink", Type: 'L', Content: "/etc/passwd\x00",
			Magic: "ustar  \x00"}, file("harmless")},
		"name that leaves":                   {file("../evil")},
		"name that leaves in the middle":     {file("a/../../evil")},
		"name that leaves by its prefix":     {{Name: "evil", Prefix: "..", Type: tar.TypeReg, Content: "x"}},
		"name that leaves by its record":     {pax(record("path", "../evil")), file("harmless")},
		"name of dots only":                  {file("..")},
		"symbolic link that leaves":          {link("a", "../../etc")},
		"symbolic link that is absolute":     {link("a", "/etc")},
		"symbolic link that leaves by links": {link("d/a", ".."), link("b", "d/a/../../x")},
		"symbolic link by its record":        {pax(record("linkpath", "/etc")), link("a", "harmless")},
		"symbolic link chain that leaves":    {link("a/one", ".."), link("a/two", "one/.."), link("a/three", "two/..")},
		"write through a link":               {link("a", "."), file("a/b")},
		"write through a link that leaves":   {link("a", ".."), file("a/evil")},
		"file, then a directory of its name": {file("a"), file("a/b")},
		"directory, then a file":             {{Name: "a/", Type: tar.TypeDir}, file("a")},
		"directory, then a link":             {{Name: "a/", Type: tar.TypeDir}, link("a", "b"), file("a/c")},
		"link, then a directory":             {link("a", "b"), {Name: "a/", Type: tar.TypeDir}},
		"file twice":                         {file("a"), file("a")},
		"file twice, written otherwise":      {file("a"), file("./a")},
		"file twice, with double slashes":    {file("d/a"), file("d//a")},
		"link, then a file of its name":      {link("a", "b"), file("a")},
		"hard link to outside":               {{Name: "a", Type: tar.TypeLink, Link: "/etc/shadow"}},
		"hard link that leaves":              {{Name: "a", Type: tar.TypeLink, Link: "../x"}},
		"hard link to a symbolic link":       {link("l", "x"), {Name: "a", Type: tar.TypeLink, Link: "l"}},
		"hard link to nothing":               {{Name: "a", Type: tar.TypeLink, Link: "later"}, file("later")},
		"hard link to itself":                {{Name: "a", Type: tar.TypeLink, Link: "a"}},
		"hard link to a directory":           {{Name: "d/", Type: tar.TypeDir}, {Name: "a", Type: tar.TypeLink, Link: "d"}},
	}
}

// hostileForms returns tar archives with kinds, modes, sizes and records that are not allowed in releases.
func hostileForms() map[string][]Block {
	return map[string][]Block{
		"character device": {{Name: "null", Type: tar.TypeChar}},
		"block device":     {{Name: "sda", Type: tar.TypeBlock}},
		"fifo":             {{Name: "pipe", Type: tar.TypeFifo}},
		"setuid":           {{Name: "su", Type: tar.TypeReg, Mode: "0004755\x00", Content: "x"}},
		"setgid":           {{Name: "sg", Type: tar.TypeReg, Mode: "0002755\x00", Content: "x"}},
		"sticky":           {{Name: "st", Type: tar.TypeReg, Mode: "0001777\x00", Content: "x"}},
		"setuid directory": {{Name: "d/", Type: tar.TypeDir, Mode: "0004755\x00"}, file("d/a")},
		"negative size": {{Name: "a", Type: tar.TypeReg,
			Size: "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xf0", Content: "x"}},
		"size beyond all bounds": {{Name: "a", Type: tar.TypeReg,
			Size: "\x80\x00\x00\x00\x7f\xff\xff\xff\xff\xff\xff\xff", Content: "x"}},
		"size that is not a number":         {{Name: "a", Type: tar.TypeReg, Size: "zzzzzzzzzzz\x00", Content: "x"}},
		"negative size by its record":       {pax(record("size", "-1")), file("a")},
		"size by its record, too large":     {pax(record("size", "99999999999")), file("a")},
		"zero byte in a name by its record": {pax(record("path", "a\x00b")), file("harmless")},
		"zero byte in a link by its record": {pax(record("linkpath", "a\x00/etc")), link("a", "b")},
		"record without an end":             {pax("30 path=a"), file("a")},
		"record of negative length":         {pax("-5 path=a\n"), file("a")},
		"record that is not a record":       {pax("hello\n"), file("a")},
		"extended attribute":                {pax(record("SCHILY.xattr.security.capability", "x")), file("a")},
		"access control list":               {pax(record("SCHILY.acl.access", "user::rwx")), file("a")},
		"sparse file of GNU":                {{Name: "a", Type: tar.TypeGNUSparse, Magic: "ustar  \x00", Content: "x"}},
		"sparse file by its records": {pax(record("GNU.sparse.major", "1") + record("GNU.sparse.minor", "0") +
			record("GNU.sparse.name", "../evil") + record("GNU.sparse.realsize", "999999999999")), file("a")},
		"multi-volume file":       {{Name: "a", Type: 'M', Magic: "ustar  \x00", Content: "x"}},
		"volume label":            {{Name: "label", Type: 'V', Magic: "ustar  \x00"}, file("a")},
		"unknown type":            {{Name: "a", Type: 'Z', Content: "x"}},
		"part of a name too long": {pax(record("path", strings.Repeat("n", 300))), file("a")},
		"path too long":           {pax(record("path", strings.Repeat("d/", 3000)+"a")), file("a")},
		"nested too deep":         {pax(record("path", strings.Repeat("d/", 70)+"a")), file("a")},
		"wrong checksum":          {{Name: "a", Type: tar.TypeReg, Content: "x", BadSum: true}},
		"nothing":                 {},
	}
}

// HostileTars returns tar archives that agents must refuse: some that no library writes, and some that libraries write.
func HostileTars() []Hostile {
	cases := hostileNames()
	maps.Copy(cases, hostileForms())
	var list []Hostile
	for name, blocks := range cases {
		list = append(list, Hostile{"tar: " + name, artifact.Tar, Raw(blocks...)})
	}
	whole := Raw(file("a"), Block{Name: "b", Type: tar.TypeReg, Content: strings.Repeat("y", 2000)})
	for _, cut := range Boundaries(whole) {
		list = append(list, Hostile{fmt.Sprintf("tar: cut at an entry, byte %d", cut), artifact.Tar, whole[:cut]})
	}
	return append(list,
		Hostile{"tar: cut inside of a file", artifact.Tar, whole[:len(whole)-1024-600]},
		Hostile{"tar: cut behind a file", artifact.Tar, whole[:700]},
		Hostile{"tar: no archive", artifact.Tar, []byte(strings.Repeat("no archive ", 200))},
		Hostile{"tar.gz: no archive", artifact.TarGz, []byte("no archive")},
		Hostile{"tar.zst: no archive", artifact.TarZst, []byte("no archive")},
		Hostile{"tar.xz: no archive", artifact.TarXz, []byte("no archive")},
	)
}

// Bomb returns a gzipped archive with one file of size zero bytes.
func Bomb(t *testing.T, size int64) Hostile {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	w := tar.NewWriter(z)
	if err := w.WriteHeader(&tar.Header{Name: "zeros", Typeflag: tar.TypeReg, Mode: 0o644, Size: size}); err != nil {
		t.Fatal(err)
	}
	must(io.CopyN(w, zeros{}, size))(t)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return Hostile{"tar.gz: bomb", artifact.TarGz, b.Bytes()}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// ZipEntry is an entry of a zip archive, which need not be valid.
type ZipEntry struct {
	Name    string
	Mode    uint32 // of Unix, including the file type
	Content string
	Method  uint16
	Flags   uint16
	Size    uint32 // as written in the directory; 0 for the true size
	At      *int   // offset written in the directory; nil for the true offset
}

// RawZip joins entries into an archive.
func RawZip(entries ...ZipEntry) []byte {
	var out, directory bytes.Buffer
	le := binary.LittleEndian
	for _, e := range entries {
		at := out.Len()
		size := uint32(len(e.Content))
		claimed := size
		if e.Size != 0 {
			claimed = e.Size
		}
		sum := crc32.ChecksumIEEE([]byte(e.Content))
		head := make([]byte, 30)
		copy(head, "PK\x03\x04\x14\x00")
		le.PutUint16(head[6:], e.Flags)
		le.PutUint16(head[8:], e.Method)
		le.PutUint32(head[14:], sum)
		le.PutUint32(head[18:], size)
		le.PutUint32(head[22:], claimed)
		le.PutUint16(head[26:], uint16(len(e.Name)))
		out.Write(head)
		out.WriteString(e.Name + e.Content)

		if e.At != nil {
			at = *e.At
		}
		entry := make([]byte, 46)
		copy(entry, "PK\x01\x02\x14\x03\x14\x00")
		le.PutUint16(entry[8:], e.Flags)
		le.PutUint16(entry[10:], e.Method)
		le.PutUint32(entry[16:], sum)
		le.PutUint32(entry[20:], size)
		le.PutUint32(entry[24:], claimed)
		le.PutUint16(entry[28:], uint16(len(e.Name)))
		le.PutUint32(entry[38:], e.Mode<<16)
		le.PutUint32(entry[42:], uint32(at))
		directory.Write(entry)
		directory.WriteString(e.Name)
	}
	end := make([]byte, 22)
	copy(end, "PK\x05\x06")
	le.PutUint16(end[8:], uint16(len(entries)))
	le.PutUint16(end[10:], uint16(len(entries)))
	le.PutUint32(end[12:], uint32(directory.Len()))
	le.PutUint32(end[16:], uint32(out.Len()))
	return append(append(out.Bytes(), directory.Bytes()...), end...)
}

// The types of Unix files in zip archives.
const (
	zipFile = 0o100000
	zipLink = 0o120000
)

// HostileZips returns zip archives that careless readers accept.
func HostileZips() []Hostile {
	plain := func(name string) ZipEntry { return ZipEntry{Name: name, Mode: zipFile | 0o644, Content: "x"} }
	sym := func(name, to string) ZipEntry { return ZipEntry{Name: name, Mode: zipLink | 0o777, Content: to} }
	first := 0
	cases := map[string][]ZipEntry{
		"slip":                      {plain("../../evil")},
		"slip in the middle":        {plain("a/../../evil")},
		"absolute name":             {plain("/etc/passwd")},
		"zero byte in a name":       {plain("a\x00b")},
		"name twice":                {plain("a"), plain("a")},
		"name twice, two spellings": {plain("d/a"), plain("d//a")},
		"symbolic link that leaves": {sym("a", "../../etc/passwd")},
		"absolute symbolic link":    {sym("a", "/etc/passwd")},
		"write through a link":      {sym("a", ".."), plain("a/evil")},
		"link to nothing":           {sym("a", "")},
		"setuid":                    {{Name: "su", Mode: zipFile | 0o4755, Content: "x"}},
		"character device":          {{Name: "null", Mode: 0o020666}},
		"fifo":                      {{Name: "pipe", Mode: 0o010644}},
		"encrypted":                 {{Name: "a", Mode: zipFile | 0o644, Content: "x", Flags: 1}},
		"unknown compression":       {{Name: "a", Mode: zipFile | 0o644, Content: "x", Method: 99}},
		"other size than it says":   {{Name: "a", Mode: zipFile | 0o644, Content: "x", Size: 1 << 30}},
		"overlapping entries":       {plain("a"), {Name: "b", Mode: zipFile | 0o644, Content: "x", At: &first}},
		"nested too deep":           {plain(strings.Repeat("d/", 70) + "a")},
		"part of a name too long":   {plain(strings.Repeat("n", 300))},
		"nothing":                   {},
	}
	var list []Hostile
	for name, entries := range cases {
		list = append(list, Hostile{"zip: " + name, artifact.Zip, RawZip(entries...)})
	}
	good := RawZip(plain("a"))
	return append(list,
		Hostile{"zip: truncated", artifact.Zip, good[:len(good)-10]},
		Hostile{"zip: no archive", artifact.Zip, []byte("no archive")},
	)
}

// ZipBomb returns a zip archive with one file of size zero bytes.
func ZipBomb(t *testing.T, size int64) Hostile {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	f := must(w.Create("zeros"))(t)
	must(io.CopyN(f, zeros{}, size))(t)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return Hostile{"zip: bomb", artifact.Zip, b.Bytes()}
}
