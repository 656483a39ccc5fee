// Package site has the layout of the site that `make site` builds from the documents, and the tests of what it built.
package site
