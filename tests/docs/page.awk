# page.awk - a Markdown page as a bash script of the same length: line n of the script stands for line
# n of the page, so that an error of bash names the line of the page. README.md in this folder has
# the convention; the functions that are called here are in blocks.
function bad(text) {
    printf "%s:%d: %s\n", page, NR, text > "/dev/stderr"
    failed = 1
}
function quoted(s) {
    gsub(/'/, "'\\''", s)
    return "'" s "'"
}
function forget() {
    file = job = needs = output = ""
}
# The line that opens a block: a heredoc for a function, or commands as they are.
function opened(kind, at) {
    raw = 0
    if (kind == "")
        bad("this block does not say what it is: sh, console, yaml, c, python, text")
    else if (kind !~ /^(sh|console|yaml|c|python|json|csv|text)$/)
        bad("the tests do not know how to try a block of " kind)
    if (file != "")
        at = "save " NR " " quoted(file)
    else if (output != "")
        at = "output " NR " " quoted(output)
    else if (needs != "")
        at = "parsed " NR " " kind " " quoted(needs)
    else if (kind == "sh") {
        raw = 1
        at = "block " NR
    } else if (kind == "yaml")
        at = "job " NR " " quoted(job)
    else if (kind == "console" || kind == "c" || kind == "python")
        at = kind " " NR
    else
        at = ": " # text that no command prints: nothing to try
    forget()
    return raw ? at : at " <<'END_OF_BLOCK'"
}
state == "code" {
    if ($0 == "```") {
        print raw ? "(exit $?)" : "END_OF_BLOCK"
        state = ""
    } else
        print
    next
}
state == "test" {
    if ($0 == "-->") {
        print ""
        state = ""
    } else
        print
    next
}
/^ +```/ {
    bad("a block in a list or quotation is not tried: begin it in the first column")
}
/^```/ {
    print opened(substr($0, 4))
    state = "code"
    next
}
/^<!-- test$/ {
    print ""
    state = "test"
    next
}
/^<!-- [a-z]+: .* -->$/ {
    word = $2
    text = $0
    sub(/^<!-- [a-z]+: */, "", text)
    sub(/ *-->$/, "", text)
    if (word == "test:") {
        print text
        next
    } else if (word == "file:")
        file = text
    else if (word == "job:")
        job = text
    else if (word == "needs:")
        needs = text
    else if (word == "output:")
        output = text
    else
        bad("the tests do not know the word '" word "'")
    print ""
    next
}
{
    if (NF > 0 && file job needs output != "") {
        bad("a comment for the tests must be followed by a block")
        forget()
    }
    print ""
}
END {
    if (state != "")
        bad("the page ends inside a block")
    exit failed
}
