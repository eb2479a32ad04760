"""The documentation site: the documents of all rooms, and a reference made from the program.

    documents    where each document is in the site, and how OPERATING.md is cut into pages
    markdown     headings, anchors and links of a Markdown text
    links        links between documents become links between pages
    reference/   pages made from the program: methods, events, settings, metrics, SQL, commands
    site         one version of the site, made by Sphinx
    versions     the versions in one folder, and the page that lists them

`python -m dealer.docs FOLDER` runs it in a clone, with the extra `docs`. The room is not in the
wheel, whose users have no sources of the documents.
"""
