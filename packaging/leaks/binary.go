package leaks

import (
	"bufio"
	"bytes"
	"io"
	"regexp"
	"slices"
	"sync"
)

// mostBinary is the number of bytes at the start of a binary file that are scanned.
const mostBinary = 64 << 20

// headSize is the number of bytes at the start of a file that show whether it is binary.
const headSize = 8 << 10

// heads has the readers of the starts of files.
var heads = sync.Pool{New: func() any { return bufio.NewReaderSize(nil, headSize) }}

// readable returns the part of a file that is scanned. For a binary file this is the text in its first bytes: bytes
// that are not text become zeros, and the zeros between the letters of UTF-16 are left out.
func readable(b *bufio.Reader) (text io.Reader, binary bool) {
	head, _ := b.Peek(headSize) // an error is returned by the read that follows
	if bytes.IndexByte(head, 0) < 0 {
		return b, false
	}
	wide := bytes.HasPrefix(head, []byte("\xff\xfe")) || bytes.HasPrefix(head, []byte("\xfe\xff"))
	return printable{io.LimitReader(b, mostBinary), wide}, true
}

// printable replaces bytes that are not text with zeros.
type printable struct {
	io.Reader
	wide bool // leave out the zeros that it reads
}

func (p printable) Read(b []byte) (int, error) {
	n, err := p.Reader.Read(b)
	if p.wide {
		n = len(slices.DeleteFunc(b[:n:n], func(c byte) bool { return c == 0 }))
	}
	letters := letters()
	for i, c := range b[:n] {
		b[i] = letters[c]
	}
	return n, err
}

// letters maps each byte to itself if it is text, or else to 0.
var letters = sync.OnceValue(func() *[256]byte {
	var table [256]byte
	for c := range table {
		if ' ' <= c && c < 0x7f || c == '\n' || c == '\r' || c == '\t' {
			table[c] = byte(c)
		}
	}
	return &table
})

// keyInBinary matches the marker of a private key and the first line of the key. Programs contain the marker among
// their constants, without such a line.
var keyInBinary = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(
		`PRIVATE KEY(?: BLOCK)?-----(?:\r?\n|\\r?\\?n|\\n)(?:[A-Za-z-]+: [^\n]*\r?\n)*\s*[A-Za-z0-9+/]{40,}`)
})
