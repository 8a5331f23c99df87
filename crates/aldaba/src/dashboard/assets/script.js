// What pages do beyond HTML: live parts, times as people say them, copying, the search key. Every page works without it.
"use strict";

const body = document.body;
document.documentElement.dataset.script = "yes";
const language = document.documentElement.lang || "en";

// ---- Times: how long ago, or in how long. The exact moment stays in the title.

const relative = new Intl.RelativeTimeFormat(language, { numeric: "always", style: "short" });
const exact = new Intl.DateTimeFormat(language, { dateStyle: "medium", timeStyle: "medium" });
const UNITS = [["second", 60], ["minute", 60], ["hour", 24], ["day", 30]];

function spoken(moment) {
  let amount = (moment - Date.now()) / 1000;
  for (const [unit, next] of UNITS) {
    if (Math.abs(Math.round(amount)) < next) return relative.format(Math.round(amount), unit);
    amount /= next;
  }
  return exact.format(moment);
}

function showTimes(root) {
  for (const time of root.querySelectorAll("time[datetime]")) {
    const moment = new Date(time.dateTime);
    if (Number.isNaN(moment.getTime())) continue;
    const text = spoken(moment);
    if (time.textContent !== text) time.textContent = text;
    const title = `${exact.format(moment)} · ${time.dateTime}`;
    if (time.title !== title) time.title = title;
  }
}

// ---- Morphing: what stays the same is not touched, so that focus, selection, scroll and open details stay.

function sameKind(one, other) {
  return one.nodeType === other.nodeType && one.nodeName === other.nodeName
    && (one.nodeType !== Node.ELEMENT_NODE || one.id === other.id && one.dataset?.key === other.dataset?.key);
}

function morphAttributes(from, to) {
  for (const { name } of [...from.attributes]) {
    // What a person has opened stays open, and what the script shows stays shown.
    if (!to.hasAttribute(name) && name !== "open") from.removeAttribute(name);
  }
  for (const { name, value } of to.attributes) {
    if (name === "hidden" && from.matches(".copy")) continue;
    if (from.getAttribute(name) !== value) from.setAttribute(name, value);
  }
}

function morph(from, to) {
  if (from.isEqualNode(to)) return;
  if (from.nodeType !== Node.ELEMENT_NODE) {
    if (from.nodeValue !== to.nodeValue) from.nodeValue = to.nodeValue;
    return;
  }
  // The text of a time is the script's own.
  if (from.matches("time") && from.getAttribute("datetime") === to.getAttribute("datetime")) return;
  if (from.matches("input, textarea, select") && from === document.activeElement) return;
  morphAttributes(from, to);
  morphChildren(from, to);
}

function morphChildren(from, to) {
  let old = from.firstChild;
  for (const wanted of [...to.childNodes]) {
    let match = old;
    while (match && !sameKind(match, wanted)) match = match.nextSibling;
    if (match) {
      while (old !== match) {
        const gone = old;
        old = old.nextSibling;
        gone.remove();
      }
      old = match.nextSibling;
      morph(match, wanted);
    } else {
      from.insertBefore(wanted, old);
    }
  }
  while (old) {
    const gone = old;
    old = old.nextSibling;
    gone.remove();
  }
}

function update({ page, block, html }) {
  if (page !== body.dataset.page) return;
  const place = document.querySelector(`[data-block="${CSS.escape(block)}"]`);
  if (!place) return;
  const parsed = new DOMParser().parseFromString(`<template>${html}</template>`, "text/html");
  const wanted = place.cloneNode(false);
  wanted.append(parsed.querySelector("template").content);
  morphChildren(place, wanted);
  prepare(place);
}

// ---- The stream: one for all tabs of a browser, held by a tab that is seen. The others hear from it by a channel.

const channel = "BroadcastChannel" in window ? new BroadcastChannel("aldaba-live") : null;
const pages = new Map();
let source = null;
let streamed = "";
let release = null;
let leading = false;

function connect() {
  const wanted = [...pages.keys()].sort();
  const query = wanted.map((page) => `page=${encodeURIComponent(page)}`).join("&");
  if (query === streamed && source && source.readyState !== EventSource.CLOSED) return;
  disconnect();
  if (wanted.length === 0) return;
  streamed = query;
  source = new EventSource(`${body.dataset.live}?${query}`);
  source.onmessage = (event) => {
    const change = JSON.parse(event.data);
    update(change);
    channel?.postMessage({ change });
  };
  // A refused stream is not tried again by the browser; a server that restarts is there again soon.
  source.onerror = () => {
    if (source && source.readyState === EventSource.CLOSED) setTimeout(() => { if (leading) { streamed = ""; connect(); } }, 5000);
  };
}

function disconnect() {
  source?.close();
  source = null;
  streamed = "";
}

function isShown() {
  return document.visibilityState === "visible" && body.dataset.page && document.querySelector("[data-block]");
}

function lead() {
  leading = true;
  pages.clear();
  pages.set(body.dataset.page, 1);
  channel?.postMessage({ who: true });
  connect();
}

function stopLeading() {
  leading = false;
  disconnect();
  release?.();
  release = null;
}

const COUNTED = { shown: 1, gone: -1 };

channel?.addEventListener("message", ({ data }) => {
  if (data.change) return update(data.change);
  if (data.who) {
    if (isShown() && !leading) channel.postMessage({ shown: body.dataset.page });
    return;
  }
  for (const [word, sign] of Object.entries(COUNTED)) {
    const page = data[word];
    if (!leading || !page) continue;
    const tabs = (pages.get(page) ?? 0) + sign;
    if (tabs > 0) pages.set(page, tabs);
    else pages.delete(page);
    // A page that has just been shown gets all of its parts.
    if (sign > 0) streamed = "";
    connect();
  }
});

let waiting = false;

function follow() {
  if (!isShown()) {
    if (leading) stopLeading();
    else channel?.postMessage({ gone: body.dataset.page });
    return;
  }
  if (leading || waiting) return;
  channel?.postMessage({ shown: body.dataset.page });
  // Without a secure context there are no locks: the tab that is seen has a stream of its own.
  if (!navigator.locks || !channel) return lead();
  waiting = true;
  navigator.locks.request("aldaba-live", () => new Promise((done) => {
    waiting = false;
    release = done;
    if (isShown()) lead();
    else done();
  }));
}

document.addEventListener("visibilitychange", follow);
window.addEventListener("pagehide", () => {
  if (leading) stopLeading();
  else channel?.postMessage({ gone: body.dataset.page });
});
window.addEventListener("pageshow", (event) => { if (event.persisted) follow(); });

// ---- Copying, searching, forms.

function prepare(root) {
  showTimes(root);
  if (navigator.clipboard) for (const button of root.querySelectorAll(".copy[hidden]")) button.hidden = false;
}

document.addEventListener("click", async (event) => {
  const copy = event.target.closest("[data-copy]");
  if (copy) {
    const from = copy.dataset.copyFrom && document.getElementById(copy.dataset.copyFrom);
    await navigator.clipboard.writeText(from ? from.textContent : copy.dataset.copy);
    const before = copy.textContent;
    copy.textContent = body.dataset.copied;
    setTimeout(() => { copy.textContent = before; }, 1500);
    return;
  }
});

document.addEventListener("keydown", (event) => {
  const search = document.getElementById("search");
  const typing = event.target.closest?.("input, textarea, select, [contenteditable]");
  if (event.key === "/" && search && !typing && !event.ctrlKey && !event.metaKey && !event.altKey) {
    event.preventDefault();
    search.focus();
    search.select();
  }
});

// A form is sent once, however often its button is pressed.
document.addEventListener("submit", (event) => {
  if (event.target.method !== "post") return;
  if (event.target.dataset.sent) event.preventDefault();
  event.target.dataset.sent = "yes";
});
window.addEventListener("pageshow", () => {
  for (const form of document.forms) delete form.dataset.sent;
});

prepare(document);
setInterval(() => showTimes(document), 1000);
follow();
document.querySelector("form[data-submit]")?.requestSubmit();
