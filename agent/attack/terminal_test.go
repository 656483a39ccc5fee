package attack_test

func pushInput() {}
