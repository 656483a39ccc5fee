a: {{ 'aaaa' | regex_match('(a') }} # error: missing ), unterminated subpattern // look at the place that the excerpt shows
