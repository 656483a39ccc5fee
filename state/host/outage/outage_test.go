package outage

import (
	"context"
	"errors"
	"testing"
)

// TestOutagesAreNotMistakes checks outputs of programs: an unreachable server is temporary; an answer about a name, a
// version or a checksum is not.
func TestOutagesAreNotMistakes(t *testing.T) {
	missing := func(name string) bool { return name == "typo.example.com" }
	for output, want := range map[string]bool{
		"E: Failed to fetch http://deb.debian.org/x.deb  Temporary failure resolving 'deb.debian.org'":                      true,
		"E: Failed to fetch http://deb/x.deb  Could not connect to deb:80 (192.0.2.1). - connect (111: Connection refused)": true,
		"Cannot initiate the connection to deb:80 (2001:db8::1). - connect (101: Network is unreachable)":                   true,
		"E: Failed to fetch http://deb/x  503  Service Unavailable [IP: 192.0.2.1 80]":                                      true,
		"E: Failed to fetch http://deb/x  404  Not Found [IP: 192.0.2.1 80]":                                                false,
		"E: Failed to fetch http://deb/x  Hash Sum mismatch":                                                                false,
		"E: Failed to fetch http://deb/x  Error reading from server. Remote end closed connection [IP: 192.0.2.1 80]":       true,
		"E: Failed to fetch http://deb/x  File has unexpected size (1 != 2). Mirror sync in progress? [IP: 192.0.2.1]":      true,
		"Curl error (18): Transferred a partial file for http://m/x.rpm [transfer closed with 9 bytes remaining to read]":   true,
		"error: failed retrieving file 'x' from m : transfer closed with 9 bytes remaining to read":                         true,
		"E: Unable to locate package nosuch": false,
		"Curl error (7): Couldn't connect to server for http://m/repodata/repomd.xml [Failed to connect to m port 80: No " +
			"route to host]": true,
		"Curl error (6): Couldn't resolve host name for http://mirror.example.com/repodata/repomd.xml":                      true,
		"Curl error (6): Couldn't resolve host name for http://typo.example.com/repodata/repomd.xml":                        false,
		"Status code: 404 for http://m/repodata/repomd.xml":                                                                 false,
		"error: failed retrieving file 'core.db' from m : Operation too slow. Less than 1 bytes/sec":                        true,
		"error: failed retrieving file 'core.db' from m : The requested URL returned error: 404":                            false,
		"WARNING: fetching https://dl/main: temporary error (try again later)":                                              true,
		"fatal: unable to access 'https://git.example.com/x/': Could not resolve host: git.example.com":                     true,
		"fatal: unable to access 'https://typo.example.com/x/': Could not resolve host: typo.example.com":                   false,
		"ssh: connect to host git.example.com port 22: Connection timed out\nfatal: Could not read from remote repository.": true,
		"remote: Repository not found.\nfatal: repository 'https://git.example.com/x/' not found":                           false,
		"fatal: unable to access 'https://x/': The requested URL returned error: 503":                                       true,
		"npm error code EAI_AGAIN": true,
		"npm error network request to https://registry.npmjs.org/x failed, reason: getaddrinfo ENOTFOUND registry.npmjs.org": true,
		"npm error 404 Not Found - GET https://registry.npmjs.org/nosuch":                                                    false,
		"WARNING: Retrying (Retry(total=0)) after connection broken by 'NewConnectionError'\n" +
			"ERROR: No matching distribution found": true,
		"ERROR: No matching distribution found for nosuch": false,
		"ERROR: Could not find a valid gem 'x', here is why: Unable to download data from https://rubygems.org/ - " +
			"connection refused": true,
		"Error response from daemon: Get \"https://r.example.com/v2/\": dial tcp: lookup r.example.com on 127.0.0.53:53: " +
			"no such host": true,
		"Error response from daemon: manifest for nginx:nosuch not found: manifest unknown": false,
	} {
		if got := saysOutage(output, missing); got != want {
			t.Errorf("%q is an outage: %t", output, got)
		}
	}
	err := Recognize(context.Background(), "Connection refused", errors.New("installing x"))
	if !Passing(err) || err.Error() != "installing x" || Passing(errors.New("x")) ||
		Recognize(context.Background(), "x", nil) != nil {
		t.Errorf("the error is %v", err)
	}
}
