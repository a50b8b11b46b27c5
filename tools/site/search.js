// search.js - search over the sections of all pages (index.js): every word of the query must occur.
// A section counts more where a word is in its heading, then where it begins a word of the text.
'use strict';

// [{url, page, section, words: text around the first hit}], best first.
function tuttiSearch(pages, query, most) {
    var words = query.toLowerCase().split(/\s+/).filter(function (w) { return w !== ''; });
    var found = [];
    if (words.length === 0)
        return found;
    pages.forEach(function (p, order) {
        var text = p[3].toLowerCase(), head = (p[1] + ' ' + p[2]).toLowerCase(), score = 0, first = -1;
        for (var i = 0; i < words.length; i++) {
            var at = text.indexOf(words[i]), inHead = head.indexOf(words[i]);
            if (at < 0 && inHead < 0)
                return;
            if (inHead >= 0)
                score += 20;
            if (at >= 0) {
                first = first < 0 ? at : Math.min(first, at);
                score += at === 0 || /[^a-z0-9_]/.test(text.charAt(at - 1)) ? 4 : 1;
                score += Math.min(text.split(words[i]).length - 1, 5);
            }
        }
        var begin = Math.max(0, first - 60);
        found.push({url: p[0], page: p[1], section: p[2], score: score, order: order,
            words: (begin > 0 ? '...' : '') + p[3].substr(begin, 160)});
    });
    found.sort(function (a, b) { return b.score - a.score || a.order - b.order; });
    return found.slice(0, most || 20);
}

function tuttiStart() {
    var query = document.getElementById('query'), list = document.getElementById('found');
    function part(name, text, into) {
        var e = document.createElement(name);
        e.textContent = text;
        into.appendChild(e);
        return e;
    }
    function show() {
        var found = tuttiSearch(tuttiPages, query.value, 20);
        list.textContent = '';
        list.hidden = query.value.trim() === '';
        if (found.length === 0)
            part('p', 'Nothing found.', list);
        found.forEach(function (f) {
            var a = part('a', '', list);
            a.href = f.url;
            part('b', f.section === f.page ? f.page : f.page + ': ' + f.section, a);
            part('span', f.words, a);
        });
    }
    query.addEventListener('input', show);
    query.addEventListener('focus', show);
    query.form.addEventListener('submit', function (e) {
        var first = list.querySelector('a');
        e.preventDefault();
        if (first)
            location.href = first.href;
    });
    document.addEventListener('click', function (e) {
        if (!list.contains(e.target) && e.target !== query)
            list.hidden = true;
    });
    document.addEventListener('keydown', function (e) {
        if (e.key === '/' && document.activeElement !== query) {
            e.preventDefault();
            query.focus();
        } else if (e.key === 'Escape') {
            list.hidden = true;
            query.blur();
        }
    });
}

if (typeof document !== 'undefined')
    tuttiStart();
