// Package network reads the network of a host: its interfaces, records of name servers, and pages of web servers. It
// changes nothing.
package network

import "github.com/corpus-agent/corpus-agent/state/host/links"

// Network is the network of one host.
type Network struct{ files fileReader }

// fileReader reads the files of a host.
type fileReader interface {
	ReadFile(path string) ([]byte, error)
}

// Of returns the network of a host. It reads resolv.conf from the given files.
func Of(files fileReader) Network { return Network{files} }

// Links returns all links with their addresses.
func (Network) Links() ([]links.Link, error) { return links.All() }
