package config

import (
	"fmt"
	"strings"
	"testing"
)

// TestEnvironmentFileIsReadAsSystemdReadsIt has quotes, comments, escapes and lines that are no assignments.
func TestEnvironmentFileIsReadAsSystemdReadsIt(t *testing.T) {
	for text, want := range map[string]string{
		"A=b\nC = d \n":                 "A=b|C=d",
		"# A=b\n; C=d\n\n no\nE=f":      "E=f",
		"A='b c'\nB=\"d 'e'\"":          "A=b c|B=d 'e'",
		"A=\"b\\\"c\\$d\\n\"":           `A=b"c$d\n`,
		"A='b\\c'":                      `A=b\c`,
		"A=b\\\nc\nD=e":                 "A=bc|D=e",
		"A=\"b\\\nc\"":                  "A=bc",
		"A='b\nc'\nD=e":                 "A=b\nc|D=e",
		"A=b'c'\"d\"":                   "A=b'c'\"d\"",
		"A='b'\"c\"d":                   "A=bcd",
		"A=b\\ \nC=d\\\\e":              `A=b |C=d\e`,
		"A=b # c":                       "A=b # c",
		"A=b=c==":                       "A=b=c==",
		"A=\nB=c":                       "A=|B=c",
		"A=1\nB=2\nA=3":                 "B=2|A=3",
		"export A=b\n1A=b\nB-C=d\n=e\n": "",
		"A=\xff\nB=c\r\nC=d\\":          "B=c|C=d",
		"A='unfinished":                 "A=unfinished",
		"":                              "",
	} {
		var got []string
		for _, v := range ParseEnvironment(text) {
			got = append(got, fmt.Sprintf("%s=%s", v.Name, v.Value))
		}
		if got := strings.Join(got, "|"); got != want {
			t.Errorf("%q gives %q, want %q", text, got, want)
		}
	}
}

func TestLinesThatAreNoAssignmentsAreFound(t *testing.T) {
	for text, want := range map[string]int{
		"":                                    0,
		"# a comment\n\nA=1\nB='2\n3'\n; c\n": 0,
		"A=1\\\n2\nB=3":                       0,
		"\n\nA=1\n-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAEbm9uZQ==\n": 4,
		"A=1\nexport B=2": 2,
		"A":               1,
	} {
		if got := NoAssignment(text); got != want {
			t.Errorf("%q: line %d, want %d", text, got, want)
		}
	}
}
