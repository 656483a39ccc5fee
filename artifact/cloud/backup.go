package cloud

import (
	"regexp"
	"sync"
)

var repositoryPattern = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^((s3:|rest:)https://[a-zA-Z0-9.-]+(:[0-9]+)?)?(/[a-zA-Z0-9._-]+)+/?$`)
})

// CheckRepository returns an error if the text is not a repository of restic. Its URL has no credentials: the cloud has
// no secrets.
func CheckRepository(text string) error {
	return matches(repositoryPattern(), text,
		"write a directory, s3:https://HOST/BUCKET/PATH or rest:https://HOST/PATH, without a login")
}

var pathPattern = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^(/[a-zA-Z0-9@._+-]+)+$`) })

// CheckPath returns an error if the text is not an absolute path.
func CheckPath(text string) error {
	return matches(pathPattern(), text, "write a path from / on, of letters, digits and @._+-")
}

var keepPattern = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(last|hourly|daily|weekly|monthly|yearly)=[1-9][0-9]{0,3}$`)
})

// CheckKeep returns an error if the text does not say how many backups are kept.
func CheckKeep(text string) error {
	return matches(keepPattern(), text,
		"write last, hourly, daily, weekly, monthly or yearly, and a number, such as daily=7")
}
