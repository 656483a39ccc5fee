package artifacttest

import "testing"

// Long skips a test in a run with -short, as continuous integration has one for a second user: the test takes long, and
// its result does not depend on the user.
func Long(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("this test takes long, and its result does not depend on the user")
	}
}
