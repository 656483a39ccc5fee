package main

import "testing"

// TestDraftOfAFormerKey imports a draft that was signed with a key that has been replaced. The hint leads to a draft of
// the new key.
func TestDraftOfAFormerKey(t *testing.T) {
	for role, replace := range map[string][]string{
		"targets": {"root change --add-key targets=@new/targets.pub --remove-key targets=@keys/targets.pub --at-once"},
		"myapp": {
			"project add myapp --key @new/myapp.pub", "project revoke myapp --key @keys/myapp.pub --at-once"},
	} {
		t.Run(role, func(t *testing.T) {
			s := newStore(t)
			s.artifact("one", "1")
			s.expect(0, "publish myapp 1.0 @one.tar.zst --channel testing", "")
			s.expect(0, "keys new --keys @new", "made")
			s.expect(0, "keys new --keys @new myapp", "made")
			host := s.host()
			s.expect(0, "export "+role+" -o @old.draft", "")
			for _, line := range replace {
				s.expect(0, line, "")
			}
			s.expect(4, "import @old.draft", "make it again, with `corpus export "+role+" -o FILE`")
			s.expect(2, "sign @old.draft --key @new/"+role+".key", "none that may sign "+role)
			s.expect(0, "export "+role+" -o @new.draft", "")
			s.expect(0, "sign @new.draft --key @new/"+role+".key", "corpus import")
			s.expect(0, "import @new.draft", "is in force")
			s.follows("afterwards", host, "myapp/testing")
			s.expect(0, "verify", "verified")
		})
	}
}
