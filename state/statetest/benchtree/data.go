package benchtree

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"fmt"
)

// User is an account of the trees. Its primary group has its name and its ID.
type User struct {
	Name     string   `json:"name"`
	UID      int      `json:"uid"`
	FullName string   `json:"fullname"`
	Shell    string   `json:"shell"`
	Groups   []string `json:"groups"`  // supplementary groups
	Key      string   `json:"key"`     // a public key for ssh-ed25519, without its kind and comment
	Comment  string   `json:"comment"` // of the key
}

// Users returns the first n accounts. They are the same every time.
func Users(n int) []User {
	list := make([]User, 0, n)
	for i := 1; i <= n; i++ {
		u := User{
			Name: fmt.Sprintf("u%04d", i), UID: 3000 + i, FullName: fmt.Sprint("User ", i), Shell: "/bin/bash",
			Groups: []string{"users"}, Key: key(i), Comment: fmt.Sprintf("u%04d@example", i),
		}
		if i%3 == 0 {
			u.Shell = "/bin/sh"
		}
		if i%2 == 0 {
			u.Groups = append(u.Groups, "games")
		}
		list = append(list, u)
	}
	return list
}

// key returns the public key of a user, derived from a number.
func key(i int) string {
	raw := sha256.Sum256([]byte(fmt.Sprint("key ", i)))
	const kind = "ssh-ed25519"
	b := binary.BigEndian.AppendUint32(nil, uint32(len(kind)))
	b = append(b, kind...)
	b = binary.BigEndian.AppendUint32(b, uint32(len(raw)))
	return base64.StdEncoding.EncodeToString(append(b, raw[:]...))
}

type app struct {
	Name    string            `json:"name"`
	Port    int               `json:"port"`
	Workers int               `json:"workers"`
	Debug   bool              `json:"debug"`
	Hosts   []string          `json:"hosts"`
	Env     map[string]string `json:"env"`
}

func applications() []app {
	list := make([]app, 0, apps)
	for i := 1; i <= apps; i++ {
		a := app{
			Name: fmt.Sprintf("app%02d", i), Port: 8000 + i, Workers: i%4 + 1, Debug: i%2 == 1,
			Env: map[string]string{"LOG_LEVEL": "info", "REGION": fmt.Sprint("eu-", i%3)},
		}
		for _, c := range "abc" {
			a.Hosts = append(a.Hosts, fmt.Sprintf("%c%d.example.org", c, i))
		}
		list = append(list, a)
	}
	return list
}
